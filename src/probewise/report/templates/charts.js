// Charts as SVG: axes, lines, bands, dots with error bars, boxes, bars, heat maps. Labels are inserted as text, never as
// markup. Colors are variables of the style sheet, so charts follow the theme without being drawn again.

const SVG = "http://www.w3.org/2000/svg";
const FONT = 13;
const DASHES = ["", "7 4", "2 3", "7 3 2 3", "12 4"];
const ruler = document.createElement("canvas").getContext("2d");

function widthOf(text, size = FONT) {
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

function make(parent, tag, attributes = {}, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

const ink = (color) => `var(--${color})`;
const stroke = (color, width = 1.5, dash = "") => ({ style: `stroke: ${ink(color)}; stroke-width: ${width}; stroke-dasharray: ${dash || "none"}; fill: none` });

// ---- axes

function niceTicks(low, high, maxTicks) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / maxTicks));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => span / size <= maxTicks) || 10 * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) ticks.push(k * step + 0); // no -0
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const write = (value) => {
    if (decimals > 5 || Math.abs(value) >= 1e7) return value === 0 ? "0" : value.toExponential(1);
    return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  };
  return ticks.map((value) => [value, write(value).replace("-", "−")]);
}

function logTicks(low, high) {
  const ticks = [];
  const steps = high / low > 1000 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power++)
    for (const times of steps) ticks.push(times * 10 ** power);
  return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001).map((tick) => [tick, tick.toLocaleString("en-US")]);
}

// A scale that maps values to positions between two ends of the chart, and its ticks.
function scaleOf(axis, values, from, to, maxTicks) {
  const known = values.filter((value) => value !== null && value !== undefined && Number.isFinite(value));
  const unit = axis.log ? Math.log10 : (value) => value;
  let [low, high] = axis.range || [Math.min(...known, ...(axis.include || [])), Math.max(...known, ...(axis.include || []))];
  if (!Number.isFinite(low)) [low, high] = [0, 1];
  if (low === high && !axis.log) [low, high] = [low - 0.5, high + 0.5];
  const ticks = axis.ticks || (axis.log ? logTicks(low, high) : niceTicks(low, high, maxTicks));
  let [first, last] = [unit(low), unit(high)];
  if (!axis.range) [first, last] = [first - 0.04 * (last - first || 0.1), last + 0.04 * (last - first || 0.1)];
  const position = (value) => from + ((unit(value) - first) / (last - first)) * (to - from);
  return { position, ticks: ticks.filter(([value]) => unit(value) >= first - 1e-9 && unit(value) <= last + 1e-9) };
}

// ---- marks

const SYMBOLS = {
  circle: (r) => `M${r},0A${r},${r} 0 1 1 ${-r},0A${r},${r} 0 1 1 ${r},0Z`,
  square: (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
  triangle: (r) => `M0,${-1.2 * r}L${1.1 * r},${0.8 * r}H${-1.1 * r}Z`,
  diamond: (r) => `M0,${-1.3 * r}L${1.1 * r},0L0,${1.3 * r}L${-1.1 * r},0Z`,
  cross: (r) => `M${-r},${-r}L${r},${r}M${r},${-r}L${-r},${r}`,
  plus: (r) => `M0,${-1.2 * r}V${1.2 * r}M${-1.2 * r},0H${1.2 * r}`,
};
const SYMBOL_NAMES = Object.keys(SYMBOLS);

function dot(parent, x, y, { color = "s1", size = 4.5, symbol = "circle", hollow = false, opacity = 1, mark = "point" }) {
  const style = `fill: ${hollow ? ink("paper") : ink(color)}; stroke: ${ink(color)}; stroke-width: 1.5; opacity: ${opacity}`;
  make(parent, "path", { class: mark, d: SYMBOLS[symbol](size), transform: `translate(${x},${y})`, style });
}

function drawLegend(svg, items, left, width) {
  let [x, y] = [left, 14];
  for (const item of items) {
    const needed = 34 + widthOf(item.name) + 14;
    if (x > left && x + needed > width) [x, y] = [left, y + 20];
    make(svg, "line", { x1: x, x2: x + 26, y1: y, y2: y, ...stroke(item.color, 2, item.dash) });
    if (item.symbol) dot(svg, x + 13, y, { ...item, size: 4, mark: "key" });
    make(svg, "text", { x: x + 32, y: y + 4.5 }, item.name);
    x += needed;
  }
  return items.length ? y + 14 : 0;
}

// The legend of a heat map.
function drawColorScale(svg, { from, to, fills }, left) {
  make(svg, "text", { x: left, y: 17, "font-size": 12 }, from);
  const start = left + widthOf(from, 12) + 8;
  fills.forEach((fill, k) => make(svg, "rect", { x: start + 22 * k, y: 6, width: 22, height: 13, style: `fill: ${fill}` }));
  make(svg, "text", { x: start + 22 * fills.length + 8, y: 17, "font-size": 12 }, to);
}

// ---- the chart

function chart(container, spec) {
  if (!container || !container.clientWidth) return;
  const width = container.clientWidth;
  const { height, x = {}, y = {}, lines = [], bands = [], dots = [], bars = [], boxes = [], cells = [], rules = [], legend = [] } = spec;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("font-size", FONT);
  const targets = [];
  const size = spec.font || FONT;
  const valuesOn = (name) => [
    ...lines.flatMap((line) => line[name]),
    ...bands.flatMap((band) => (name === "x" ? band.x : [...band.low, ...band.high])),
    ...dots.flatMap((each) => (each[`${name}Error`] ? [each[name] - each[`${name}Error`], each[name] + each[`${name}Error`]] : [each[name]])),
    ...boxes.flatMap((box) => (name === "x" ? box.five : [box.y])),
    ...bars.flatMap((bar) => (name === "x" ? [0, bar.x] : [bar.y])),
    ...cells.map((cell) => cell[name]),
  ];
  const top = drawLegend(svg, legend, 8, width) + (spec.scale ? 30 : spec.top || 10);
  const slanted = Boolean(x.slanted);
  const longestX = slanted ? Math.max(...x.ticks.map(([, text]) => widthOf(text, size))) : 0;
  const bottom = height - (slanted ? 14 + 0.88 * longestX : 22) - (x.label ? 20 : 0);
  const ys = scaleOf(y, valuesOn("y"), y.reversed ? top : bottom, y.reversed ? bottom : top, 6);
  const left = 10 + Math.max(0, ...ys.ticks.map(([, text]) => widthOf(text, size))) + (y.label ? 20 : 0);
  const right = width - (spec.right || 14);
  const xs = scaleOf(x, valuesOn("x"), left, right, Math.max(3, Math.floor((right - left) / 80)));

  if (spec.scale) drawColorScale(svg, spec.scale, left);
  for (const [value, text, title] of ys.ticks) {
    const at = ys.position(value);
    if (!y.bare) make(svg, "line", { class: "grid", x1: left, x2: right, y1: at, y2: at });
    const label = make(svg, "text", { class: "ytick", x: left - 6, y: at + 0.34 * size, "text-anchor": "end", "font-size": size }, text);
    if (title) make(label, "title", {}, title);
  }
  let last = -Infinity;
  for (const [value, text, title] of xs.ticks) {
    const at = xs.position(value);
    if (!x.bare) make(svg, "line", { class: "grid", x1: at, x2: at, y1: top, y2: bottom });
    if (!slanted && at - widthOf(text, size) / 2 < last + 6) continue; // the label would overlap the previous one
    last = at + widthOf(text, size) / 2;
    const where = slanted
      ? { transform: `translate(${at + 4},${bottom + 10}) rotate(-60)`, "text-anchor": "end" }
      : { x: Math.min(at, width - widthOf(text, size) / 2 - 1), y: bottom + 16, "text-anchor": "middle" };
    const label = make(svg, "text", { class: "xtick", "font-size": size, ...where }, text);
    if (title) make(label, "title", {}, title);
  }
  if (x.label) make(svg, "text", { class: "label", x: (left + right) / 2, y: height - 5, "text-anchor": "middle" }, x.label);
  if (y.label) make(svg, "text", { class: "label", transform: `translate(13,${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label);

  for (const rule of rules) {
    const isVertical = rule.x !== undefined;
    const at = isVertical ? xs.position(rule.x) : ys.position(rule.y);
    const ends = isVertical ? { x1: at, x2: at, y1: top, y2: bottom } : { x1: left, x2: right, y1: at, y2: at };
    make(svg, "line", { class: "rule", ...ends, ...stroke(rule.color || "muted", rule.width || 1.5, rule.dash ?? "6 4") });
    if (!rule.text) continue;
    const fits = at + 6 + widthOf(rule.text, 12) < width;
    const spot = { x: at + (fits ? 5 : -5), y: rule.above ? top - 4 : bottom - 6, "text-anchor": fits ? "start" : "end" };
    make(svg, "text", { ...spot, "font-size": 12, style: `fill: ${ink(rule.color || "muted")}` }, rule.text);
  }
  for (const band of bands) {
    const there = band.x.map((value, k) => `${xs.position(value)},${ys.position(band.high[k])}`);
    const back = band.x.map((value, k) => `${xs.position(value)},${ys.position(band.low[k])}`).reverse();
    make(svg, "polygon", { class: "band", points: [...there, ...back].join(" "), style: `fill: ${ink(band.color)}; opacity: 0.13` });
  }
  for (const cell of cells) {
    const [across, down] = [Math.abs(xs.position(1) - xs.position(0)), Math.abs(ys.position(1) - ys.position(0))];
    const [cx, cy] = [xs.position(cell.x), ys.position(cell.y)];
    const shape = { x: cx - across / 2 + 0.5, y: cy - down / 2 + 0.5, width: Math.max(1, across - 1), height: Math.max(1, down - 1) };
    make(svg, "rect", { class: "cell", ...shape, style: `fill: ${cell.fill}` });
    targets.push({ x: cx, y: cy, text: cell.text });
  }
  for (const bar of bars) {
    const [start, end, at] = [xs.position(0), xs.position(bar.x), ys.position(bar.y)];
    make(svg, "rect", { class: "point", x: start, y: at - 7, width: Math.max(1, end - start), height: 14, rx: 2, style: `fill: ${ink(bar.color || "s1")}` });
    targets.push({ x: end, y: at, text: bar.text });
  }
  for (const line of lines) {
    const known = line.x.map((value, k) => [value, line.y[k]]).filter(([, value]) => value !== null);
    const path = known.map(([at, value], k) => `${k ? "L" : "M"}${xs.position(at).toFixed(1)},${ys.position(value).toFixed(1)}`);
    make(svg, "path", { class: "line", d: path.join(""), ...stroke(line.color, line.width || 2, line.dash) });
  }
  for (const box of boxes) {
    const [min, lower, median, upper, max] = box.five.map(xs.position);
    const at = ys.position(box.y);
    make(svg, "line", { x1: min, x2: max, y1: at, y2: at, ...stroke(box.color, 1.2) });
    make(svg, "rect", { class: "box", x: lower, y: at - 7, width: Math.max(0.5, upper - lower), height: 14, style: `fill: ${ink("card")}; stroke: ${ink(box.color)}; stroke-width: 1.2` });
    make(svg, "line", { x1: median, x2: median, y1: at - 7, y2: at + 7, ...stroke(box.color, 2.5) });
    targets.push({ x: median, y: at, text: box.text });
  }
  for (const each of dots) {
    if (each.x === null || each.y === null) continue;
    const [cx, cy] = [xs.position(each.x), ys.position(each.y) + (each.shift || 0)];
    if (each.xError) make(svg, "path", { class: "error", d: `M${xs.position(each.x - each.xError)},${cy}H${xs.position(each.x + each.xError)}`, ...stroke(each.color || "s1") });
    if (each.yError) make(svg, "path", { class: "error", d: `M${cx},${ys.position(each.y - each.yError)}V${ys.position(each.y + each.yError)}`, ...stroke(each.color || "s1") });
    dot(svg, cx, cy, each);
    if (each.text) targets.push({ x: cx, y: cy, text: each.text });
  }
  container.replaceChildren(svg, tooltip(svg, targets));
}

// A tooltip with the text of the mark nearest to the pointer, one line per item.
function tooltip(svg, targets) {
  const box = document.createElement("div");
  box.className = "tip";
  box.hidden = true;
  const ring = make(svg, "circle", { class: "ring", r: 8, visibility: "hidden" });
  function show(event) {
    const bounds = svg.getBoundingClientRect();
    const zoom = bounds.width / svg.viewBox.baseVal.width;
    const [px, py] = [(event.clientX - bounds.left) / zoom, (event.clientY - bounds.top) / zoom];
    let nearest = null;
    let smallest = 32 ** 2;
    for (const target of targets) {
      const distance = (target.x - px) ** 2 + (target.y - py) ** 2;
      if (distance < smallest) [nearest, smallest] = [target, distance];
    }
    box.hidden = !nearest;
    ring.setAttribute("visibility", nearest ? "visible" : "hidden");
    if (!nearest) return;
    ring.setAttribute("cx", nearest.x);
    ring.setAttribute("cy", nearest.y);
    box.replaceChildren(
      ...nearest.text.map((line) => {
        const part = document.createElement("div");
        part.textContent = line;
        return part;
      }),
    );
    box.style.left = `${Math.max(0, Math.min(nearest.x * zoom + 12, bounds.width - box.offsetWidth - 2))}px`;
    box.style.top = `${nearest.y * zoom > box.offsetHeight + 14 ? nearest.y * zoom - box.offsetHeight - 12 : nearest.y * zoom + 14}px`;
  }
  const hide = () => {
    box.hidden = true;
    ring.setAttribute("visibility", "hidden");
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
  return box;
}
