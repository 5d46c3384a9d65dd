// The plots of the page.

const report = JSON.parse(document.getElementById("report-data").textContent);
const byId = (id) => document.getElementById(id);
const series = (index) => `s${(index % 6) + 1}`;
const whole = (value) => value.toLocaleString("en-US");
const isNarrow = () => document.documentElement.clientWidth < 640;
const written = (value, decimals) => (value === null ? "–" : value.toFixed(decimals).replace("-", "−"));

function short(text, longest = 22) {
  const line = String(text).replace(/\s+/g, " ");
  if (line.length <= longest) return line;
  const tail = Math.floor((longest - 1) / 2); // names often differ only at the end
  return `${line.slice(0, longest - 1 - tail)}…${line.slice(-tail)}`;
}

// The names truncated, with a number where truncation makes them equal.
function shortened(names, longest = 22) {
  const cut = names.map((name) => short(name, longest));
  const seen = new Map();
  for (const [k, label] of cut.entries()) seen.set(label, [...(seen.get(label) || []), names[k]]);
  return cut.map((label, k) => {
    const equal = [...new Set(seen.get(label))];
    return equal.length > 1 ? `${label} (${equal.indexOf(names[k]) + 1})` : label;
  });
}
const namedTicks = (names, longest) => shortened(names, longest).map((label, index) => [index, label, label === names[index] ? undefined : names[index]]);

// ---- the ranking

function drawRanking() {
  const { columns, labels, decimals, measure } = report.ranking;
  // A feature without a score, such as one dropped before the last round, is in the table only.
  const scored = columns.feature.map((_, row) => row).filter((row) => columns[measure][row] !== null);
  const rows = scored.slice(0, isNarrow() ? 20 : 30);
  const shown = rows.length;
  const names = rows.map((row) => columns.feature[row]);
  const digits = decimals[measure];
  const y = { ticks: namedTicks(names), range: [-0.6, shown - 0.4], reversed: true, bare: !report.ranking.by_score };
  const text = (row) => {
    const error = columns.std_error && columns.std_error[row] !== null ? ` ± ${written(columns.std_error[row], digits)}` : "";
    const score = `${labels[measure]} ${written(columns[measure][row], digits)}${error}`;
    return [`${columns.rank[row]}. ${short(columns.feature[row], 60)}`, score, ...(report.directions[row] ? [report.directions[row]] : [])];
  };
  const height = 60 + 21 * shown;
  if (!report.ranking.by_score) {
    const bars = rows.map((row, index) => ({ x: shown - index, y: index, text: text(row) }));
    chart(byId("plot-ranking"), { height: height - 30, x: { range: [0, shown + 1], ticks: [], bare: true }, y, bars });
    return;
  }
  const dots = rows.map((row, index) => ({
    x: columns[measure][row],
    y: index,
    xError: columns.std_error ? 2 * (columns.std_error[row] || 0) : undefined,
    hollow: columns.related ? !columns.related[row] : false,
    text: text(row),
  }));
  const rules = measure === "above_average" ? [{ x: 0, text: "average feature", above: true, width: 2, dash: "" }] : [];
  chart(byId("plot-ranking"), { height, top: 20, x: { label: labels[measure], include: rules.length ? [0] : [] }, y, dots, rules });
}

// ---- direction of effects

function drawValues() {
  const { features, classes, boxes, points, target, values } = report.values;
  features.forEach((_, feature) => {
    const container = byId(`plot-values-${feature}`);
    if (!classes) {
      const dots = target.map((y, row) => ({ x: values[feature][row], y, size: 2.5, opacity: 0.5, text: null }));
      chart(container, { height: 170, font: 11, x: {}, y: {}, dots });
      return;
    }
    const describe = (group, five) => [classes[group], `quartiles ${written(five[1], 2)} and ${written(five[3], 2)}`, `median ${written(five[2], 2)}`];
    const dots = points[feature].flatMap((group, k) =>
      group.map((value, row) => ({ x: value, y: k, shift: 12 + 5 * Math.sin(2.4 * row), size: 1.8, color: series(k), opacity: 0.6, mark: "value" })),
    );
    const drawn = boxes[feature].flatMap((five, k) => (five ? [{ five, y: k, color: series(k), text: describe(k, five) }] : []));
    const y = { ticks: namedTicks(classes, 12), range: [-0.45, classes.length - 0.25], reversed: true, bare: true };
    const ends = boxes[feature].filter(Boolean).flatMap((five) => [five[0], five[4]]);
    const log = Math.min(...ends) > 0 && Math.max(...ends) > 50 * Math.min(...ends);
    chart(container, { height: 34 + 40 * classes.length, font: 11, x: { log }, y, boxes: drawn, dots });
  });
}

// ---- sizes, convergence, univariate rankings

function sizeAxis(sizes) {
  return { label: "number of features", log: true, include: [1, Math.max(...sizes)] };
}
const suggestion = (size, text) => ({ x: size, color: "s2", width: 2, text });

function drawSizes() {
  const { size, score, std_error, suggested, measure, best } = report.sizes;
  const limit = score[size.indexOf(best)] - std_error[size.indexOf(best)];
  const dots = size.map((many, k) => ({ x: many, y: score[k], yError: std_error[k], size: 4, text: [`${whole(many)} features`, `${measure} ${written(score[k], 3)} ± ${written(std_error[k], 3)}`] }));
  const rules = report.predicts ? [{ y: limit, dash: "2 3" }, suggestion(suggested, `suggested: ${whole(suggested)}`)] : [];
  chart(byId("plot-sizes"), { height: 360, x: sizeAxis(size), y: { label: measure }, lines: [{ x: size, y: score, color: "s1" }], dots, rules });
}

function drawSurvival() {
  const { halves, times } = report.survival;
  const curves = halves.map(({ name, curve }, index) => ({ name, ...curve, color: series(index) }));
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share}%`]);
  const x = { label: "time", ticks: times.map((time) => [time, String(Number(time.toPrecision(3)))]), include: [0] };
  chart(byId("plot-survival"), { height: 360, x, y: { range: [0, 1.02], ticks }, lines: curves, bands: curves, legend: curves });
}

function drawConvergence() {
  const { probes, overlap, order_change, value_change } = report.convergence;
  const line = (id, y, color, axis) => {
    const dots = probes.map((many, k) => ({ x: many, y: y[k], color, size: probes.length > 40 ? 0.1 : 3, text: [`${whole(many)} probes`, Number(y[k]).toPrecision(3)] }));
    chart(byId(id), { height: 240, x: { label: "probes", include: [0] }, y: axis, lines: [{ x: probes, y, color }], dots });
  };
  const shares = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share}%`]);
  line("plot-overlap", overlap, "s1", { range: [0, 1.05], ticks: shares });
  line("plot-order", order_change, "s3", { include: [0] });
  line("plot-value", value_change, "s4", { include: [0] });
}

function drawUnivariate() {
  const { columns } = report.ranking;
  const total = columns.feature.length;
  const shown = Math.min(total, 100);
  const missed = new Set(report.univariate.missed);
  const keys = Object.keys(report.univariate.methods);
  const dots = keys.flatMap((key, index) =>
    columns.feature.slice(0, shown).map((name, row) => ({
      x: columns.rank[row],
      y: columns[key][row],
      color: series(index),
      symbol: SYMBOL_NAMES[index],
      size: missed.has(name) ? 5.5 : 3.5,
      opacity: missed.has(name) ? 1 : 0.55,
      text: [short(name, 60), `rank here ${columns.rank[row]}`, `rank by ${key.toUpperCase()} ${whole(columns[key][row])}`],
    })),
  );
  const legend = keys.map((key, index) => ({ name: key.toUpperCase(), color: series(index), symbol: SYMBOL_NAMES[index], dash: "0 99" }));
  chart(byId("plot-univariate"), {
    height: 420,
    x: { label: `rank here (top ${whole(shown)})`, log: true, include: [1, shown] },
    y: { label: "univariate rank", log: true, include: [1, total], reversed: true },
    lines: [{ x: [1, shown], y: [1, shown], color: "muted", dash: "2 3", width: 1.5 }],
    dots,
    legend: [...legend, { name: "same rank", color: "muted", dash: "2 3" }],
  });
}

// ---- heat maps

const mixed = (color, share) => `color-mix(in srgb, var(--${color}) ${(100 * share).toFixed(0)}%, var(--low))`;

function drawHeatMap(id, features, values, fill, decimals, ends) {
  const shown = isNarrow() ? 15 : features.length;
  const names = features.slice(0, shown);
  const ticks = namedTicks(names, isNarrow() ? 12 : 22);
  const cells = names.flatMap((first, row) =>
    names.map((second, column) => ({ row, column, first, second, value: values[row][column] })).filter(({ value }) => value !== null),
  );
  const width = byId(id).clientWidth;
  const used = Math.min(width, 260 + 26 * shown);
  chart(byId(id), {
    height: Math.max(280, 190 + (isNarrow() ? 14 : 19) * shown),
    font: isNarrow() ? 10 : 11,
    right: Math.max(14, width - used),
    x: { ticks, range: [-0.5, shown - 0.5], slanted: true, bare: true },
    y: { ticks, range: [-0.5, shown - 0.5], reversed: true, bare: true },
    cells: cells.map(({ row, column, first, second, value }) => ({ x: column, y: row, fill: fill(value), text: [short(first, 40), short(second, 40), written(value, decimals)] })),
    scale: { from: ends[0], to: ends[1], fills: ends[2].map(fill) },
  });
}

function drawRedundancy() {
  const { features, correlation } = report.redundancy;
  drawHeatMap("plot-redundancy", features, correlation, (value) => mixed("s1", value), 2, ["0", "1", [0, 0.25, 0.5, 0.75, 1]]);
}

// ---- pairs that act together

function drawPairs() {
  const { pairs, drawn } = report.interactions;
  drawn.values.forEach(([x, y], pair) => {
    const dots = x.map((value, row) => ({ x: value, y: y[row], size: 3, opacity: 0.75, color: series(drawn.class_of[row]), symbol: SYMBOL_NAMES[drawn.class_of[row] % SYMBOL_NAMES.length], text: [drawn.classes[drawn.class_of[row]]] })).filter((dot) => dot.x !== null && dot.y !== null);
    const legend = drawn.classes.slice(0, 6).map((name, index) => ({ name: short(name, 16), color: series(index), symbol: SYMBOL_NAMES[index % SYMBOL_NAMES.length], dash: "0 99" }));
    chart(byId(`plot-pair-${pair}`), { height: 280, font: 11, x: { label: short(pairs[pair].first, 30) }, y: { label: short(pairs[pair].second, 30) }, dots, legend });
  });
}

// ---- a study

function drawStudy() {
  const { sizes, selectors, classifiers, accuracy, std, stability, suggested } = report.study;
  const style = (index) => ({ color: series(index), dash: DASHES[index % DASHES.length], symbol: SYMBOL_NAMES[index % SYMBOL_NAMES.length] });
  const legend = selectors.map((name, index) => ({ name: short(name), ...style(index) }));
  const drawn = (rows) => ({
    lines: rows.map((y, index) => ({ x: sizes, y, ...style(index) })),
    dots: rows.flatMap((y, index) => sizes.map((size, k) => ({ x: size, y: y[k], ...style(index), size: 3.5, text: [short(selectors[index], 40), `${whole(size)} features: ${written(y[k], 3)}`] }))),
    legend,
    height: 360,
    x: sizeAxis(sizes),
  });
  classifiers.forEach((_, classifier) => {
    const means = accuracy.map((rows) => rows[classifier]);
    const bands = means.map((mean, index) => {
      const spread = std[index][classifier].map((value) => value || 0);
      return { x: sizes, low: mean.map((value, k) => value - spread[k]), high: mean.map((value, k) => value + spread[k]), color: series(index) };
    });
    chart(byId(`plot-study-${classifier}`), { ...drawn(means), bands, y: { label: "accuracy" }, rules: [suggestion(suggested, whole(suggested))] });
  });
  chart(byId("plot-stability"), { ...drawn(stability.nogueira), y: { label: "stability", include: [0, 1] } });
}

function drawAll() {
  drawRanking();
  if (report.values) drawValues();
  if (report.sizes) drawSizes();
  if (report.survival) drawSurvival();
  if (report.convergence) drawConvergence();
  if (report.univariate) drawUnivariate();
  if (report.redundancy) drawRedundancy();
  if (report.interactions && report.interactions.drawn) drawPairs();
  if (report.study) drawStudy();
}
