// Line charts of a report: numbers, calendars, and a drawing that answers to pointer and keys.
const $ = (id) => document.getElementById(id);
const two = (n) => String(n).padStart(2, "0");
const DAY = 864e5, MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

// Stamps are milliseconds of the time on the wall, read as if they were UTC, or numbers.
const month = (t) => new Date(t).getUTCFullYear() * 12 + new Date(t).getUTCMonth();
const clock = (t) => `${two(new Date(t).getUTCHours())}:${two(new Date(t).getUTCMinutes())}`;
const day = (t) => `${new Date(t).getUTCDate()} ${MONTHS[new Date(t).getUTCMonth()]}`;
const seconds = (t) => (t % 6e4 ? `:${two(new Date(t).getUTCSeconds())}` : "");
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

// The finest of these calendars that changes at most `most` times along the stamps; its changes are the ticks. Where that is
// once or never, every so many changes of the next finer one.
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
  const named = (at, text) => at.map((i, k) => [i, `${k || isDate ? "" : `${label} `}${text(stamps[i])}`]);
  let finer = [];
  for (const [key, text] of calendars) {
    const at = stamps.flatMap((t, i) => (key(t) !== key(i ? stamps[i - 1] : t - 1) ? [i] : []));
    if (at.length <= most && (at.length > 1 || !finer.length)) return named(at, text);
    if (at.length <= most) return finer.filter((_, k) => k % Math.ceil(finer.length / most) === 0);
    finer = named(at, text);
  }
  return finer;
}

// `make` gives what to draw: `stamps` of all places, `lines` of {kind, from, values}, `bands` of {kind, from, low, high}, the
// `legend`, and `read`, the values of a place by name. Returns a function that draws anew, nothing pointed at.
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
    show(place === null && event.key.startsWith("Arrow") ? from : to);
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
