"use strict";
addEventListener("error", (event) => (document.documentElement.dataset.error = event.message));
(() => {
  const numbers = JSON.parse(document.getElementById("numbers").textContent);
  const { samples, columns } = numbers;
  const $ = (id) => document.getElementById(id);
  const two = (n) => String(n).padStart(2, "0");
  const DAY = 864e5, MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

  // Stamps are milliseconds of the time on the wall, read as if they were UTC, or numbers.
  const month = (t) => new Date(t).getUTCFullYear() * 12 + new Date(t).getUTCMonth();
  const clock = (t) => `${two(new Date(t).getUTCHours())}:${two(new Date(t).getUTCMinutes())}`;
  const day = (t) => `${new Date(t).getUTCDate()} ${MONTHS[new Date(t).getUTCMonth()]}`;
  const seconds = (t) => (t % 6e4 ? `:${two(new Date(t).getUTCSeconds())}` : "");
  const daily = (stamps) => stamps.every((t) => t % DAY === 0);
  const dated = samples.time === "date";
  const say = (t, short) => {
    if (!dated) return `${t}`;
    return `${day(t)} ${new Date(t).getUTCFullYear()}${short ? "" : ` ${clock(t)}${seconds(t)}`}`;
  };
  const spread = (stamps, count) =>
    Array.isArray(stamps) ? stamps : Array.from({ length: count }, (_, i) => stamps.first + i * stamps.step);

  const unpack = ([low, step, text]) => {
    const bytes = atob(text), values = [];
    for (let i = 0; i < bytes.length; i += 2) {
      const whole = bytes.charCodeAt(i) | (bytes.charCodeAt(i + 1) << 8);
      values.push(whole === 65535 ? NaN : low + step * whole);
    }
    return values;
  };
  const number = (v) => {
    if (!Number.isFinite(v)) return "\u2013";
    const size = Math.abs(v), tiny = size !== 0 && size < 1e-4;
    const text = tiny || size >= 1e9 ? v.toExponential(2) : String(Number(v.toPrecision(size < 1e4 ? 4 : 7)));
    return text.replaceAll("-", "\u2212");
  };

  function valueTicks(low, high) {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
    return ticks;
  }

  // The finest of these calendars that changes at most `most` times along the stamps; its changes are the ticks.
  function stampTicks(stamps, most, isDate, label) {
    const calendars = [];
    if (isDate) {
      for (const s of [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800])
        calendars.push([(t) => Math.floor(t / (1e3 * s)), (t) => (t % DAY ? clock(t) + seconds(t) : day(t))]);
      calendars.push([(t) => Math.floor((t - 4 * DAY) / (7 * DAY)), day]);
      for (const m of [1, 3, 12, 24, 60, 120, 240, 1200])
        calendars.push([
          (t) => Math.floor(month(t) / m),
          (t) => (month(t) % 12 ? MONTHS[month(t) % 12] : String(month(t) / 12)),
        ]);
    } else for (let p = 1; p < 1e15; p *= 10) for (const s of [1, 2, 5]) calendars.push([(t) => Math.floor(t / (s * p)), String]);
    for (const [key, text] of calendars) {
      const at = stamps.flatMap((t, i) => (key(t) !== key(i ? stamps[i - 1] : t - 1) ? [i] : []));
      if (at.length <= most) return at.map((i, k) => [i, `${k || isDate ? "" : `${label} `}${text(stamps[i])}`]);
    }
    return [];
  }

  // Lines and bands are {kind, name, from, values}, a band {kind, from, low, high}; `read` says the values of a place.
  function chart(id, make, high) {
    const box = $(id), values = $(`${id}-values`);
    let place = null, spec = null, scale = null;
    function draw() {
      spec = make();
      const wide = Math.max(260, box.clientWidth), tall = wide < 500 ? high * 0.85 : high;
      const all = [...spec.lines.map((l) => l.values), ...spec.bands.flatMap((b) => [b.low, b.high])].flat();
      const known = all.filter(Number.isFinite);
      let low = known.reduce((a, b) => Math.min(a, b), Infinity), top = known.reduce((a, b) => Math.max(a, b), -Infinity);
      if (!known.length) [low, top] = [0, 1];
      if (spec.zero) low = Math.min(0, low);
      if (top - low <= Math.abs(top) * 1e-9) [low, top] = [low - (Math.abs(low) || 1) / 2, top + (Math.abs(top) || 1) / 2];
      const pad = spec.zero ? 0 : 0.04 * (top - low);
      [low, top] = [low - pad, top + 0.04 * (top - low)];
      const ticks = valueTicks(low, top), left = 14 + 7 * Math.max(...ticks.map((t) => number(t).length)), right = 10;
      const last = spec.stamps.length - 1, floor = tall - 24;
      const x = (i) => (last ? left + ((wide - left - right) * i) / last : (left + wide) / 2);
      const y = (v) => floor - ((floor - 20) * (v - low)) / (top - low);
      const path = (from, list) => {
        let d = "", pen = "M";
        list.forEach((v, i) => {
          if (!Number.isFinite(v)) pen = "M";
          else (d += `${pen}${x(from + i).toFixed(1)} ${y(v).toFixed(1)}`), (pen = "L");
        });
        return d;
      };
      const area = (b) => {
        const parts = [];
        b.low.forEach((v, i) => {
          if (!Number.isFinite(v) || !Number.isFinite(b.high[i])) return parts.push([]);
          if (!parts.length) parts.push([]);
          parts[parts.length - 1].push(i);
        });
        const corner = (i, v) => `${x(b.from + i).toFixed(1)} ${y(v).toFixed(1)}`;
        return parts
          .filter((p) => p.length)
          .map((p) => `M${[...p.map((i) => corner(i, b.high[i])), ...p.reverse().map((i) => corner(i, b.low[i]))].join("L")}Z`)
          .join("");
      };
      const parts = [];
      if (spec.ahead) parts.push(`<rect class=ahead x=${x(spec.ahead)} y=14 width=${x(last) - x(spec.ahead)} height=${floor - 14} />`);
      for (const t of ticks) {
        parts.push(`<line class=grid x1=${left} x2=${wide - right} y1=${y(t)} y2=${y(t)} />`);
        parts.push(`<text x=${left - 8} y=${y(t) + 4} text-anchor=end>${number(t)}</text>`);
      }
      parts.push(`<text x=0 y=8>${spec.unit}</text>`);
      for (const [i, text] of stampTicks(spec.stamps, Math.max(2, Math.floor((wide - left) / 80)), spec.dated, spec.label)) {
        const half = 3.4 * text.length, anchor = x(i) + half > wide ? "end" : "middle";
        parts.push(`<line class=axis x1=${x(i)} x2=${x(i)} y1=${floor} y2=${floor + 5} />`);
        parts.push(`<text x=${x(i)} y=${floor + 19} text-anchor=${anchor}>${text}</text>`);
      }
      parts.push(`<line class=axis x1=${left} x2=${wide - right} y1=${floor} y2=${floor} />`);
      if (spec.mark != null) parts.push(`<line class=cross stroke-dasharray="2 3" x1=${x(spec.mark)} x2=${x(spec.mark)} y1=16 y2=${floor} />`);
      for (const b of spec.bands) parts.push(`<path class="band ${b.kind}" d="${area(b)}"/>`);
      for (const l of spec.lines) {
        parts.push(`<path class="line ${l.kind}" d="${path(l.from, l.values)}"/>`);
        if (last < 30) l.values.forEach((v, i) => Number.isFinite(v) && parts.push(`<circle class="dot ${l.kind}" r=3.5 cx=${x(l.from + i)} cy=${y(v)} />`));
      }
      box.innerHTML = `<svg height=${tall} viewBox="0 0 ${wide} ${tall}" aria-hidden=true>${parts.join("")}<g></g></svg>`;
      scale = { x, y, last, floor, left, span: wide - left - right };
      show(place);
    }
    function show(i) {
      place = i === null ? null : Math.min(Math.max(i, 0), scale.last);
      if (place === null) return (values.textContent = "Point at the chart, or move along it with the arrow keys, to read values.");
      const dots = spec.lines
        .filter((l) => Number.isFinite(l.values[place - l.from]))
        .map((l) => `<circle class="dot ${l.kind}" r=4.5 cx=${scale.x(place)} cy=${scale.y(l.values[place - l.from])} />`);
      box.querySelector("g").innerHTML =
        `<line class=cross x1=${scale.x(place)} x2=${scale.x(place)} y1=14 y2=${scale.floor} />${dots.join("")}`;
      values.innerHTML = spec.read(place).map(([name, text]) => `<span>${name} <b>${text}</b></span>`).join(" ");
    }
    const point = (event) => {
      const across = event.clientX - box.getBoundingClientRect().left - scale.left;
      show(Math.round((across / scale.span) * scale.last));
    };
    box.addEventListener("pointermove", point);
    box.addEventListener("pointerdown", point);
    box.addEventListener("keydown", (event) => {
      const from = place === null ? spec.ahead || 0 : place;
      const to = { ArrowLeft: from - 1, ArrowRight: from + 1, PageDown: from - 24, PageUp: from + 24, Home: 0, End: scale.last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(place === null ? from : to);
    });
    const legend = make().legend.map(([kind, text]) => {
      const shape = kind.startsWith("band") ? `<rect class="${kind}" width=22 height=10 />` : `<path class="line ${kind}" d="M0 5H22"/>`;
      return `<li><svg viewBox="0 0 22 10" aria-hidden=true>${shape}</svg>${text}</li>`;
    });
    $(`${id}-legend`).innerHTML = legend.join("");
    let wide = 0;
    new ResizeObserver(() => box.clientWidth !== wide && ((wide = box.clientWidth), draw())).observe(box);
    draw();
    return () => ((place = null), draw());
  }

  const { past, horizon, windows } = samples;
  const halves = Object.fromEntries(Object.entries(samples.bands).map(([level, rows]) => [level, rows.map(unpack)]));
  const levels = Object.keys(halves).sort((a, b) => b - a);
  const chosen = () => {
    const window = windows[$("window").value - 1], c = Number($("channel").value), all = unpack(window.series[c]);
    const bands = levels.map((level) => ({ level, half: halves[level][c] }));
    return {
      stamps: spread(window.stamps, past + horizon), before: all.slice(0, past), truth: all.slice(past, past + horizon),
      forecast: all.slice(past + horizon), bands, window, c,
    };
  };
  const happened = ({ before, truth }, i) => (i < past ? before[i] : truth[i - past]);
  function forecastSpec() {
    const now = chosen(), whole = daily(now.stamps), last = now.before[past - 1];
    const join = (list) => [last, ...list]; // lines start at the last value seen, so that no gap suggests missing data
    return {
      stamps: now.stamps, dated, label: "at", ahead: past - 1 || null, unit: "raw units",
      lines: [
        { kind: "past", from: 0, values: now.before },
        { kind: "truth", from: past - 1, values: join(now.truth) },
        { kind: "predicted", from: past - 1, values: join(now.forecast) },
      ],
      bands: now.bands.map(({ half }, k) => ({
        kind: k ? "inner" : "outer", from: past,
        low: now.forecast.map((v, i) => v - half[i]), high: now.forecast.map((v, i) => v + half[i]),
      })),
      legend: [
        ["past", "past"], ["truth", "what happened"], ["predicted", "forecast"],
        ...levels.map((level, k) => [`band ${k ? "inner" : "outer"}`, `${level} % interval`]),
      ],
      read: (i) => [
        [dated ? "" : "at", say(now.stamps[i], whole)], [i < past ? "past" : "happened", number(happened(now, i))],
        ...(i < past ? [] : [
          ["forecast", number(now.forecast[i - past])],
          ...now.bands.map(({ level, half }) => [
            `${level} %`, `${number(now.forecast[i - past] - half[i - past])} to ${number(now.forecast[i - past] + half[i - past])}`,
          ]),
        ]),
      ],
    };
  }

  const cell = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
  function tableOf(header, rows, kind) {
    const table = document.createElement("table"), box = Object.assign(document.createElement("div"), { className: "scroll", tabIndex: 0 });
    table.className = kind;
    const line = (cells, tag) => {
      const row = document.createElement("tr");
      cells.forEach((c, i) => row.append(c instanceof Node ? c : cell(i && tag === "td" ? "td" : "th", c)));
      return row;
    };
    table.createTHead().append(line(header, "th"));
    const body = table.createTBody();
    rows.forEach((r) => body.append(line(r, "td")));
    box.append(table);
    return box;
  }

  function valuesTable() {
    if (!$("table").parentElement.open) return;
    const now = chosen(), whole = daily(now.stamps);
    const header = [dated ? "Date" : "Row", "Happened", "Forecast", ...levels.map((l) => `${l} % interval`)];
    $("table").replaceChildren(tableOf(header, now.forecast.map((v, i) => [
      say(now.stamps[past + i], whole), number(now.truth[i]), number(v),
      ...now.bands.map(({ half }) => `${number(v - half[i])} to ${number(v + half[i])}`),
    ]), "long"));
  }

  const reads = windows.map((w) => w.read && w.read.weights.map(unpack));
  // Weights as multiples of an even share, in powers of two. One scale of colours for all windows: of what is read more than
  // evenly, but for the last percent, so that what is not read at all does not make the rest pale.
  const shares = (weights) => weights.map((w) => Math.log2(Math.max(w * weights.length, 1e-9)));
  const far = reads.flatMap((rows) => (rows || []).flatMap(shares)).filter((power) => power > 0).sort((a, b) => a - b);
  const farthest = Math.max(Math.log2(1.1), far[Math.floor(0.99 * (far.length - 1))] || 0);
  function readTable() {
    if (!$("read")) return;
    const k = $("window").value - 1, { read } = windows[k], segments = reads[k][0].length / 2;
    const at = spread(read.stamps, 2 * segments), whole = daily(at);
    const short = whole || (dated && at[2] - at[0] >= DAY);
    const from = (s) => {
      const [first, last] = [say(at[2 * s], short), say(at[2 * s + 1], short)];
      return first === last ? first : `${first} to ${last}`;
    };
    const ends = document.createElement("div");
    ends.className = "ends";
    ends.append(cell("span", say(at[0], true)), cell("span", say(at[at.length - 1], true)));
    const head = document.createElement("th");
    head.append(ends);
    const rows = columns.map((name, c) => {
      const weights = reads[k][c], most = weights.indexOf(Math.max(...weights));
      const rects = shares(weights).map((power, i) => {
        const share = Math.max(-1, Math.min(1, power / farthest));
        const own = i % 2, s = (i - own) / 2;
        return `<rect class=${share < 0 ? "under" : "over"} fill-opacity=${Math.abs(share).toFixed(2)} x=${s + 0.03} width=0.94 ` +
          `y=${own ? 0 : 22} height=${own ? 20 : 8}><title>${from(s)}, ${own ? "own" : "all channels"}: ${(100 * weights[i]).toFixed(1)} %</title></rect>`;
      });
      const strip = document.createElement("td");
      strip.innerHTML = `<svg viewBox="0 0 ${segments} 30" preserveAspectRatio=none aria-hidden=true>${rects.join("")}</svg>`;
      return [
        name, strip, from((most - (most % 2)) / 2) + (most % 2 ? "" : ", all channels"), `${(100 * weights[most]).toFixed(1)} %`,
        read.segments[c].toFixed(1), number(read.beta[c]),
      ];
    });
    $("strongest").textContent = (2 ** farthest).toPrecision(2);
    $("read").replaceChildren(tableOf(
      ["Channel", head, "Read most", "Weight", `Effective of ${segments}`, "\u03b2*"], rows, "read long"));
  }

  const redraw = chart("forecast", forecastSpec, 340);
  function choose() {
    const now = chosen(), k = Number($("window").value), whole = daily(now.stamps);
    const errors = now.forecast.map((v, i) => Math.abs(v - now.truth[i])).filter(Number.isFinite);
    const mean = errors.reduce((a, b) => a + b, 0) / errors.length;
    $("where").textContent = `${say(now.stamps[past], whole)} to ${say(now.stamps[past + horizon - 1], whole)} `;
    $("where").append(cell("span", `window ${k} of ${windows.length}, mean absolute error ${number(mean)}`));
    $("window").setAttribute("aria-valuetext", $("where").textContent);
    $("back").disabled = k <= 1;
    $("next").disabled = k >= windows.length;
    redraw();
    valuesTable();
    readTable();
  }
  const step = (by) => (($("window").value = Number($("window").value) + by), choose());
  $("back").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("window").addEventListener("input", choose);
  $("channel").addEventListener("change", choose);
  $("table").parentElement.addEventListener("toggle", valuesTable);
  $("window").disabled = windows.length < 2;
  choose();

  const plain = (lines, unit, first, label, mark) => () => {
    const names = Object.keys(lines);
    const kind = (name, i) => (label === "step" && i === 0 ? "predicted" : name.replace(" ", "-").toLowerCase());
    return {
      stamps: lines[names[0]].map((_, i) => first + i), dated: false, label, unit, zero: label === "step", bands: [], mark,
      lines: names.map((name, i) => ({ kind: kind(name, i), from: 0, values: lines[name].map((v) => (v === null ? NaN : v)) })),
      legend: names.map((name, i) => [kind(name, i), name]),
      read: (i) => [[label, first + i], ...names.map((name) => [name, number(lines[name][i] === null ? NaN : lines[name][i])])],
    };
  };
  chart("steps", plain(numbers.steps, "MSE, scaled", 1, "step"), 260);
  const best = numbers.best_epoch ? numbers.best_epoch - numbers.first_epoch : null;
  for (const [name, values] of Object.entries(numbers.epochs))
    chart(name.split(" ")[0], plain({ [name]: values }, "scaled", numbers.first_epoch, "epoch", best), 220);
  document.documentElement.dataset.ready = "yes";
})();
