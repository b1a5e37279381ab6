// The parts of a report that change: the window and channel chosen, what was read, and the charts.
const numbers = JSON.parse($("numbers").textContent);
const { samples, ahead, columns } = numbers;
const unpack = ([low, step, text]) => {
  const bytes = atob(text), values = [];
  for (let i = 0; i < bytes.length; i += 2) {
    const whole = bytes.charCodeAt(i) | (bytes.charCodeAt(i + 1) << 8);
    values.push(whole === 65535 ? NaN : low + step * whole);
  }
  return values;
};
const spread = (stamps, count) =>
  Array.isArray(stamps) ? stamps : Array.from({ length: count }, (_, i) => stamps.first + i * stamps.step);

const daily = (stamps) => stamps.every((t) => t % DAY === 0);
const dated = samples.time === "date";
const say = (t, short) => {
  if (!dated) return `${t}`;
  return `${day(t)} ${new Date(t).getUTCFullYear()}${short ? "" : ` ${clock(t)}${seconds(t)}`}`;
};
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

// Forecasts to browse: the controls, the chart and the table of `of`, whose elements begin with `name`; `then` follows a choice
// of a window. Without actual values, there are no errors.
function browser(name, of, then) {
  const { past, horizon, windows, happened } = of, at = (part) => $(`${name}-${part}`);
  const levels = [...of.levels].sort((a, b) => b - a), slider = at("window");
  const place = () => (slider ? slider.value - 1 : 0);
  const chosen = () => {
    const window = windows[place()], c = at("channel") ? Number(at("channel").value) : 0, all = unpack(window.series[c]);
    const bands = levels.map((level) => {
      const both = unpack(window.bounds[level][c]);
      return { level, low: both.slice(0, horizon), high: both.slice(horizon) };
    });
    return {
      stamps: spread(window.stamps, past + horizon), before: all.slice(0, past), truth: all.slice(past, past + horizon),
      forecast: all.slice(past + horizon), bands, window,
    };
  };
  const between = ({ low, high }, i) => `${number(low[i])} to ${number(high[i])}`;
  function spec() {
    const now = chosen(), whole = daily(now.stamps), last = now.before[past - 1];
    const join = (list) => [last, ...list]; // lines start at the last value seen, so that no gap suggests missing data
    const truth = { kind: "truth", from: past - 1, values: join(now.truth) };
    const after = (i) => [
      ...(happened ? [["actual", number(now.truth[i])]] : []), ["forecast", number(now.forecast[i])],
      ...now.bands.map((band) => [`${band.level} %`, between(band, i)]),
    ];
    return {
      stamps: now.stamps, dated, label: "at", ahead: past - 1 || null, unit: "raw units",
      lines: [
        { kind: "past", from: 0, values: now.before }, ...(happened ? [truth] : []),
        { kind: "predicted", from: past - 1, values: join(now.forecast) },
      ],
      bands: now.bands.map(({ low, high }, k) => ({ kind: k ? "inner" : "outer", from: past, low, high })),
      legend: [
        ["past", "past"], ...(happened ? [["truth", "actual"]] : []), ["predicted", "forecast"],
        ...levels.map((level, k) => [`band ${k ? "inner" : "outer"}`, `${level} % interval`]),
      ],
      read: (i) => [
        [dated ? "" : "at", say(now.stamps[i], whole)], ...(i < past ? [["past", number(now.before[i])]] : after(i - past)),
      ],
    };
  }
  function table() {
    if (!at("table").parentElement.open) return;
    const now = chosen(), whole = daily(now.stamps), known = happened ? ["Actual"] : [];
    const header = [dated ? "Date" : "Row", ...known, "Forecast", ...levels.map((l) => `${l} % interval`)];
    at("table").replaceChildren(tableOf(header, now.forecast.map((v, i) => [
      say(now.stamps[past + i], whole), ...known.map(() => number(now.truth[i])), number(v),
      ...now.bands.map((band) => between(band, i)),
    ]), "long"));
  }
  const redraw = chart(name, spec, 340);
  function choose() {
    const now = chosen(), k = place() + 1, whole = daily(now.stamps), which = [];
    if (now.window.name !== undefined) which.push(`${now.window.name}, ${k} of ${windows.length}`);
    else if (happened) which.push(`window ${k} of ${windows.length}`);
    if (happened) {
      const errors = now.forecast.map((v, i) => Math.abs(v - now.truth[i])).filter(Number.isFinite);
      which.push(`mean absolute error ${number(errors.reduce((a, b) => a + b, 0) / errors.length)}`);
    }
    at("where").textContent = `${say(now.stamps[past], whole)} to ${say(now.stamps[past + horizon - 1], whole)} `;
    at("where").append(cell("span", which.join(", ")));
    if (at("series")) at("series").value = k - 1; // a panel has a window of each series
    if (slider) {
      slider.setAttribute("aria-valuetext", at("where").textContent);
      at("back").disabled = k <= 1;
      at("next").disabled = k >= windows.length;
    }
    redraw();
    table();
    then(place());
  }
  const move = (to) => ((slider.value = to), choose());
  if (slider) {
    at("back").addEventListener("click", () => move(Number(slider.value) - 1));
    at("next").addEventListener("click", () => move(Number(slider.value) + 1));
    slider.addEventListener("input", choose);
  }
  if (at("channel")) at("channel").addEventListener("change", choose);
  if (at("series")) at("series").addEventListener("change", () => slider && move(Number(at("series").value) + 1));
  at("table").parentElement.addEventListener("toggle", table);
  choose();
}

const reads = samples.windows.map((w) => w.read && w.read.weights.map(unpack));
// Weights as multiples of an even share, in powers of two. One scale of colours for all windows: of what is read more than
// evenly, but for the last percent, so that what is not read at all does not make the rest pale.
const shares = (weights) => weights.map((w) => Math.log2(Math.max(w * weights.length, 1e-9)));
const far = reads.flatMap((rows) => (rows || []).flatMap(shares)).filter((power) => power > 0).sort((a, b) => a - b);
const farthest = Math.max(Math.log2(1.5), far[Math.floor(0.99 * (far.length - 1))] || 0);
function readTable(k) {
  if (!$("read")) return;
  const { read } = samples.windows[k], segments = reads[k][0].length / 2;
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
      const share = Math.abs(power) <= Math.log2(1.05) ? 0 : Math.max(-1, Math.min(1, power / farthest));
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
    ["Channel", head, "Read most", "Weight", `Effective of ${segments}`, "Sharpness \u03b2*"], rows, "read long"));
}

if (ahead) browser("ahead", ahead, () => {});
browser("tested", samples, readTable);

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
for (const [name, values] of Object.entries(numbers.learning))
  chart(name.split(" ")[0], plain({ [name]: values }, "scaled", 1, "validation", numbers.kept), 220);
document.documentElement.dataset.ready = "yes";
