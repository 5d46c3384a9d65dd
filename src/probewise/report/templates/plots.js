// What the page draws.

const known = JSON.parse(document.getElementById("known").textContent);
const byId = (id) => document.getElementById(id);
const series = (place) => `s${(place % 6) + 1}`;
const whole = (value) => value.toLocaleString("en-US");
const isNarrow = () => document.documentElement.clientWidth < 640;
const written = (value, decimals) => (value === null ? "–" : value.toFixed(decimals).replace("-", "−"));

function short(text, longest = 22) {
  const line = String(text).replace(/\s+/g, " ");
  if (line.length <= longest) return line;
  const tail = Math.floor((longest - 1) / 2); // names often differ in their ends only
  return `${line.slice(0, longest - 1 - tail)}…${line.slice(-tail)}`;
}

// The names cut short, numbered where that makes them alike.
function shortened(names, longest = 22) {
  const cut = names.map((name) => short(name, longest));
  const seen = new Map();
  for (const [k, label] of cut.entries()) seen.set(label, [...(seen.get(label) || []), names[k]]);
  return cut.map((label, k) => {
    const alike = [...new Set(seen.get(label))];
    return alike.length > 1 ? `${label} (${alike.indexOf(names[k]) + 1})` : label;
  });
}
const namedTicks = (names, longest) => shortened(names, longest).map((label, place) => [place, label, label === names[place] ? undefined : names[place]]);

// ---- the ranking

function drawRanking() {
  const { columns, labels, decimals, measure } = known.ranking;
  const shown = Math.min(columns.feature.length, isNarrow() ? 20 : 30);
  const names = columns.feature.slice(0, shown);
  const digits = decimals[measure];
  const y = { ticks: namedTicks(names), range: [-0.6, shown - 0.4], reversed: true, bare: !known.ranking.by_score };
  const text = (place) => {
    const error = columns.std_error && columns.std_error[place] !== null ? ` ± ${written(columns.std_error[place], digits)}` : "";
    const score = columns[measure][place] === null ? "no score" : `${labels[measure]} ${written(columns[measure][place], digits)}${error}`;
    return [`${columns.rank[place]}. ${short(names[place], 60)}`, score, ...(known.ways[place] ? [known.ways[place]] : [])];
  };
  const height = 60 + 21 * shown;
  if (!known.ranking.by_score) {
    const bars = names.map((_, place) => ({ x: shown - place, y: place, text: text(place) }));
    chart(byId("plot-ranking"), { height: height - 30, x: { range: [0, shown + 1], ticks: [], bare: true }, y, bars });
    return;
  }
  const dots = names.map((_, place) => ({
    x: columns[measure][place],
    y: place,
    xError: columns.std_error ? 2 * (columns.std_error[place] || 0) : undefined,
    hollow: columns.stands_out ? !columns.stands_out[place] : false,
    text: text(place),
  }));
  const rules = measure === "above_average" ? [{ x: 0, text: "the average feature", above: true, width: 2, dash: "" }] : [];
  chart(byId("plot-ranking"), { height, top: 20, x: { label: labels[measure], include: rules.length ? [0] : [] }, y, dots, rules });
}

// ---- up or down

function drawValues() {
  const { features, classes, boxes, points, target, values } = known.values;
  features.forEach((_, feature) => {
    const place = byId(`plot-values-${feature}`);
    if (!classes) {
      const dots = target.map((goal, row) => ({ x: values[feature][row], y: goal, size: 2.5, opacity: 0.5, text: null }));
      chart(place, { height: 170, font: 11, x: {}, y: {}, dots });
      return;
    }
    const described = (group, five) => [classes[group], `middle half ${written(five[1], 2)} to ${written(five[3], 2)}`, `median ${written(five[2], 2)}`];
    const dots = points[feature].flatMap((group, k) =>
      group.map((value, row) => ({ x: value, y: k, shift: 12 + 5 * Math.sin(2.4 * row), size: 1.8, colour: series(k), opacity: 0.6, mark: "value" })),
    );
    const drawn = boxes[feature].flatMap((five, k) => (five ? [{ five, y: k, colour: series(k), text: described(k, five) }] : []));
    const y = { ticks: namedTicks(classes, 12), range: [-0.45, classes.length - 0.25], reversed: true, bare: true };
    const ends = boxes[feature].filter(Boolean).flatMap((five) => [five[0], five[4]]);
    const log = Math.min(...ends) > 0 && Math.max(...ends) > 50 * Math.min(...ends);
    chart(place, { height: 34 + 40 * classes.length, font: 11, x: { log }, y, boxes: drawn, dots });
  });
}

// ---- sizes, convergence, features alone

function sizeAxis(sizes) {
  return { label: "number of features", log: true, include: [1, Math.max(...sizes)] };
}
const suggestion = (size, text) => ({ x: size, colour: "s2", width: 2, text });

function drawSizes() {
  const { size, score, std_error, suggested, measure, best } = known.sizes;
  const limit = score[size.indexOf(best)] - std_error[size.indexOf(best)];
  const dots = size.map((many, k) => ({ x: many, y: score[k], yError: std_error[k], size: 4, text: [`${whole(many)} features`, `${measure} ${written(score[k], 3)} ± ${written(std_error[k], 3)}`] }));
  const rules = known.predicts ? [{ y: limit, dash: "2 3" }, suggestion(suggested, `suggested: ${whole(suggested)}`)] : [];
  chart(byId("plot-sizes"), { height: 360, x: sizeAxis(size), y: { label: measure }, lines: [{ x: size, y: score, colour: "s1" }], dots, rules });
}

function drawConvergence() {
  const { probes, overlap, order_change, value_change } = known.convergence;
  const line = (id, y, colour, axis) => {
    const dots = probes.map((many, k) => ({ x: many, y: y[k], colour, size: probes.length > 40 ? 0.1 : 3, text: [`${whole(many)} probes`, Number(y[k]).toPrecision(3)] }));
    chart(byId(id), { height: 240, x: { label: "probes", include: [0] }, y: axis, lines: [{ x: probes, y, colour }], dots });
  };
  const shares = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share} %`]);
  line("plot-overlap", overlap, "s1", { range: [0, 1.05], ticks: shares });
  line("plot-order", order_change, "s3", { include: [0] });
  line("plot-value", value_change, "s4", { include: [0] });
}

function drawAlone() {
  const { columns } = known.ranking;
  const total = columns.feature.length;
  const shown = Math.min(total, 100);
  const revealed = new Set(known.alone.revealed);
  const keys = Object.keys(known.alone.words);
  const dots = keys.flatMap((key, place) =>
    columns.feature.slice(0, shown).map((name, row) => ({
      x: columns.rank[row],
      y: columns[key][row],
      colour: series(place),
      symbol: SYMBOL_NAMES[place],
      size: revealed.has(name) ? 5.5 : 3.5,
      opacity: revealed.has(name) ? 1 : 0.55,
      text: [short(name, 60), `rank here ${columns.rank[row]}`, `by ${key.toUpperCase()} ${whole(columns[key][row])}`],
    })),
  );
  const legend = keys.map((key, place) => ({ name: key.toUpperCase(), colour: series(place), symbol: SYMBOL_NAMES[place], dash: "0 99" }));
  chart(byId("plot-alone"), {
    height: 420,
    x: { label: `rank here (the first ${whole(shown)})`, log: true, include: [1, shown] },
    y: { label: "rank alone", log: true, include: [1, total], reversed: true },
    lines: [{ x: [1, shown], y: [1, shown], colour: "muted", dash: "2 3", width: 1.5 }],
    dots,
    legend: [...legend, { name: "same rank", colour: "muted", dash: "2 3" }],
  });
}

// ---- maps

const mixed = (colour, share) => `color-mix(in srgb, var(--${colour}) ${(100 * share).toFixed(0)}%, var(--low))`;

function drawMap(id, features, values, fill, decimals, ends) {
  const most = isNarrow() ? 15 : features.length;
  const names = features.slice(0, most);
  const ticks = namedTicks(names, isNarrow() ? 12 : 22);
  const cells = names.flatMap((first, row) =>
    names.map((second, column) => ({ row, column, first, second, value: values[row][column] })).filter(({ value }) => value !== null),
  );
  const wide = byId(id).clientWidth;
  const room = Math.min(wide, 260 + 26 * most);
  chart(byId(id), {
    height: Math.max(280, 190 + (isNarrow() ? 14 : 19) * most),
    font: isNarrow() ? 10 : 11,
    right: Math.max(14, wide - room),
    x: { ticks, range: [-0.5, most - 0.5], slanted: true, bare: true },
    y: { ticks, range: [-0.5, most - 0.5], reversed: true, bare: true },
    cells: cells.map(({ row, column, first, second, value }) => ({ x: column, y: row, fill: fill(value), text: [short(first, 40), short(second, 40), written(value, decimals)] })),
    scale: { from: ends[0], to: ends[1], fills: ends[2].map(fill) },
  });
}

function drawLikeness() {
  const { features, correlation } = known.likeness;
  drawMap("plot-likeness", features, correlation, (value) => mixed("s1", value), 2, ["0", "1", [0, 0.25, 0.5, 0.75, 1]]);
}

// From the largest loss to the largest gain: the colour of a value, and those of the scale.
function signedFill(values) {
  const most = Math.max(...values.flat().map((value) => Math.abs(value || 0))) || 1;
  return [(value) => mixed(value < 0 ? "s2" : "s1", Math.abs(value) / most), [-most, -most / 2, 0, most / 2, most]];
}

function drawInteractions() {
  const { features, contrast } = known.interactions;
  const [fill, steps] = signedFill(contrast);
  drawMap("plot-interactions", features, contrast, fill, 4, ["less together", "more together", steps]);
}

function drawRows() {
  const { features, effects, rows, n_rows, classes } = known.which_rows;
  const [fill, steps] = signedFill(effects);
  const starts = classes ? classes.flatMap((label, k) => (k && label === classes[k - 1] ? [] : [k])) : [];
  const ends = [...starts.slice(1), n_rows.length];
  const ticks = starts.map((start, k) => [(start + ends[k] - 1) / 2, short(classes[start], 12), classes[start]]);
  const named = (group) => {
    const which = rows ? `${rows[group].length > 1 ? "rows" : "row"} ${short(rows[group].join(", "), 40)}` : `${whole(n_rows[group])} rows`;
    return classes ? `${which} (${short(classes[group], 20)})` : which;
  };
  const cells = effects.flatMap((of, row) =>
    of.flatMap((value, column) => (value === null ? [] : [{ x: column, y: row, fill: fill(value), text: [short(features[row], 40), named(column), written(value, 4)] }])),
  );
  chart(byId("plot-rows"), {
    height: 70 + 19 * features.length,
    font: isNarrow() ? 10 : 11,
    x: { ticks, range: [-0.5, n_rows.length - 0.5], bare: true },
    y: { ticks: namedTicks(features, isNarrow() ? 12 : 22), range: [-0.5, features.length - 0.5], reversed: true, bare: true },
    cells,
    rules: starts.slice(1).map((start) => ({ x: start - 0.5, width: 2, dash: "" })),
    scale: { from: "worse with it", to: "better", fills: steps.map(fill) },
  });
}

// ---- a study

function drawStudy() {
  const { sizes, selectors, classifiers, accuracy, deviation, stability, suggested } = known.study;
  const style = (place) => ({ colour: series(place), dash: DASHES[place % DASHES.length], symbol: SYMBOL_NAMES[place % SYMBOL_NAMES.length] });
  const legend = selectors.map((name, place) => ({ name: short(name), ...style(place) }));
  const drawn = (rows) => ({
    lines: rows.map((y, place) => ({ x: sizes, y, ...style(place) })),
    dots: rows.flatMap((y, place) => sizes.map((size, k) => ({ x: size, y: y[k], ...style(place), size: 3.5, text: [short(selectors[place], 40), `${whole(size)} features: ${written(y[k], 3)}`] }))),
    legend,
    height: 360,
    x: sizeAxis(sizes),
  });
  classifiers.forEach((_, classifier) => {
    const means = accuracy.map((rows) => rows[classifier]);
    const bands = means.map((mean, place) => {
      const spread = deviation[place][classifier].map((value) => value || 0);
      return { x: sizes, low: mean.map((value, k) => value - spread[k]), high: mean.map((value, k) => value + spread[k]), colour: series(place) };
    });
    chart(byId(`plot-study-${classifier}`), { ...drawn(means), bands, y: { label: "accuracy" }, rules: [suggestion(suggested, whole(suggested))] });
  });
  chart(byId("plot-stability"), { ...drawn(stability.nogueira), y: { label: "stability", include: [0, 1] } });
}

function drawAll() {
  drawRanking();
  if (known.values) drawValues();
  if (known.sizes) drawSizes();
  if (known.convergence) drawConvergence();
  if (known.alone) drawAlone();
  if (known.likeness) drawLikeness();
  if (known.interactions) drawInteractions();
  if (known.which_rows) drawRows();
  if (known.study) drawStudy();
}
