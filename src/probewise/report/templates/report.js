"use strict";
// Draws the plots and the table of all features. Names are data: the table is made of text nodes, and what goes into a
// plot, where plotly reads a little HTML, is escaped.
(() => {
  const known = JSON.parse(document.getElementById("known").textContent);
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;

  // ---- colours

  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  let colours = {};

  function readColours() {
    const style = getComputedStyle(root);
    colours = Object.fromEntries(
      ["paper", "card", "text", "muted", "line", "grid", "accent", "low", "s1", "s2", "s3", "s4", "s5", "s6"].map(
        (name) => [name, style.getPropertyValue(`--${name}`).trim()],
      ),
    );
  }
  const series = (place) => colours[`s${(place % 6) + 1}`];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
  const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "x", "star"];

  // ---- plots

  const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  const plain = (text) => String(text).replace(/[&<>]/g, (sign) => ESCAPES[sign]);
  function short(text, longest = 22) {
    const line = String(text).replace(/\s+/g, " ");
    if (line.length <= longest) return plain(line);
    const tail = Math.floor((longest - 1) / 2); // names often differ in their ends only
    return plain(`${line.slice(0, longest - 1 - tail)}…${line.slice(-tail)}`);
  }
  const whole = (value) => value.toLocaleString("en-US");
  const isNarrow = () => window.innerWidth < 640;

  function axis(title, more = {}) {
    return {
      title: { text: title, standoff: 8 },
      gridcolor: colours.grid,
      linecolor: colours.line,
      zerolinecolor: colours.line,
      automargin: true,
      fixedrange: true,
      ...more,
    };
  }

  function draw(id, traces, layout) {
    const place = byId(id);
    if (!place) return;
    Plotly.react(
      place,
      traces,
      {
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: colours.text, size: 13, family: "system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif" },
        hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.text } },
        margin: { l: 56, r: 16, t: 16, b: 48 },
        hovermode: "closest",
        dragmode: false,
        showlegend: false,
        height: 320,
        autosize: true,
        width: root.classList.contains("paper") ? place.clientWidth : undefined,
        ...layout,
      },
      { responsive: true, displaylogo: false, displayModeBar: false },
    );
  }

  function drawRanking() {
    const { columns, labels } = known.ranking;
    const shown = Math.min(columns.feature.length, isNarrow() ? 20 : 30);
    const places = [...Array(shown).keys()];
    const scores = columns.score.slice(0, shown);
    const errors = columns.std_error && columns.std_error.slice(0, shown);
    const decimals = known.ranking.decimals;
    const hover = places.map((place) => {
      const error = errors && errors[place] !== null ? ` ± ${errors[place].toFixed(decimals)}` : "";
      const score = scores[place] === null ? "no score" : scores[place].toFixed(decimals);
      return `${columns.rank[place]}. ${short(columns.feature[place], 60)}<br>${score}${error}`;
    });
    draw(
      "plot-ranking",
      [
        {
          type: "scatter",
          mode: "markers",
          x: scores,
          y: places,
          text: hover,
          hovertemplate: "%{text}<extra></extra>",
          marker: {
            size: 9,
            color: places.map((place) => (!columns.stands_out || columns.stands_out[place] ? colours.s1 : colours.paper)),
            line: { color: colours.s1, width: 1.5 },
          },
          error_x: errors
            ? { type: "data", array: errors.map((error) => 2 * (error || 0)), color: colours.s1, thickness: 1.5, width: 4 }
            : undefined,
        },
      ],
      {
        height: 70 + 21 * shown,
        xaxis: axis(plain(labels.score), { zeroline: true }),
        yaxis: axis("", {
          tickvals: places,
          ticktext: places.map((place) => short(columns.feature[place], isNarrow() ? 14 : 26)),
          range: [shown - 0.4, -0.6],
          zeroline: false,
        }),
      },
    );
  }

  function sizeAxis(sizes) {
    const ticks = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000].filter((tick) => tick <= Math.max(...sizes));
    return axis("number of features", { type: "log", tickvals: ticks, ticktext: ticks.map(String) });
  }

  function suggestion(size, text) {
    return {
      shapes: [{ type: "line", x0: size, x1: size, y0: 0, y1: 1, yref: "paper", line: { color: colours.s2, dash: "dash", width: 2 } }],
      annotations: [
        { x: Math.log10(size), y: 0.02, yref: "paper", yanchor: "bottom", xanchor: "left", xshift: 5, text, showarrow: false, font: { color: colours.s2 } },
      ],
    };
  }

  function drawSizes() {
    const { size, score, std_error, suggested, measure, best } = known.sizes;
    const marked = suggestion(suggested, `suggested: ${whole(suggested)}`);
    const limit = score[size.indexOf(best)] - std_error[size.indexOf(best)];
    marked.shapes.push({
      type: "line", x0: 0, x1: 1, xref: "paper", y0: limit, y1: limit, line: { color: colours.muted, dash: "dot", width: 1.5 },
    });
    draw(
      "plot-sizes",
      [
        {
          type: "scatter",
          mode: "lines+markers",
          x: size,
          y: score,
          error_y: { type: "data", array: std_error, color: colours.s1, thickness: 1.5, width: 4 },
          line: { color: colours.s1, width: 2 },
          marker: { size: 8 },
          hovertemplate: `%{x} features<br>${plain(measure)} %{y:.3f}<extra></extra>`,
        },
      ],
      { height: 380, xaxis: sizeAxis(size), yaxis: axis(plain(measure)), ...marked },
    );
  }

  function drawConvergence() {
    const { probes, overlap, order_change, value_change } = known.convergence;
    const line = (id, y, colour, yaxis) =>
      draw(
        id,
        [{ type: "scatter", mode: probes.length > 40 ? "lines" : "lines+markers", x: probes, y, line: { color: colour, width: 2 }, hovertemplate: "%{x:,} probes<br>%{y:.3g}<extra></extra>" }],
        { height: 260, xaxis: axis("probes", { rangemode: "tozero", nticks: 5 }), yaxis },
      );
    line("plot-overlap", overlap, colours.s1, axis("", { range: [0, 1.05], tickformat: ".0%" }));
    line("plot-order", order_change, colours.s3, axis("", { rangemode: "tozero" }));
    line("plot-value", value_change, colours.s4, axis("", { rangemode: "tozero" }));
  }

  function drawAlone() {
    const { columns } = known.ranking;
    const keys = Object.keys(known.alone.words);
    const shown = Math.min(columns.feature.length, 100);
    const revealed = new Set(known.alone.revealed);
    const total = columns.feature.length;
    const traces = keys.map((key, place) => ({
      type: "scatter",
      mode: "markers",
      name: key.toUpperCase(),
      x: columns.rank.slice(0, shown),
      y: columns[key].slice(0, shown),
      text: columns.feature.slice(0, shown).map((name) => short(name, 60)),
      hovertemplate: `%{text}<br>rank here %{x}<br>by ${key.toUpperCase()} %{y}<extra></extra>`,
      marker: {
        symbol: SYMBOLS[place],
        size: columns.feature.slice(0, shown).map((name) => (revealed.has(name) ? 11 : 7)),
        color: series(place),
        opacity: columns.feature.slice(0, shown).map((name) => (revealed.has(name) ? 1 : 0.55)),
      },
    }));
    traces.push({
      type: "scatter", mode: "lines", name: "same rank", x: [1, shown], y: [1, shown], hoverinfo: "skip",
      line: { color: colours.muted, dash: "dot", width: 1.5 },
    });
    draw("plot-alone", traces, {
      height: 420,
      showlegend: true,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
      margin: { l: 56, r: 16, t: 40, b: 48 },
      xaxis: axis(`rank here (the first ${whole(shown)})`, { type: "log", dtick: 1, range: [-0.06, Math.log10(shown) + 0.06] }),
      yaxis: axis("rank alone", { type: "log", dtick: 1, range: [Math.log10(total) + 0.1, -0.1] }),
    });
  }

  function drawMap(id, features, values, scale, limits, title, format) {
    const most = isNarrow() ? 15 : features.length;
    const names = features.slice(0, most);
    const places = [...names.keys()];
    const ticks = { tickvals: places, ticktext: names.map((name) => short(name, isNarrow() ? 10 : 16)), zeroline: false, showgrid: false, tickfont: { size: isNarrow() ? 10 : 12 } };
    draw(
      id,
      [
        {
          type: "heatmap",
          x: places,
          y: places,
          z: values.slice(0, most).map((row) => row.slice(0, most)),
          text: names.map((first) => names.map((second) => `${short(first, 40)}<br>${short(second, 40)}`)),
          hovertemplate: `%{text}<br>%{z:${format}}<extra></extra>`,
          hoverongaps: false,
          colorscale: scale,
          zmin: limits[0],
          zmax: limits[1],
          xgap: 1,
          ygap: 1,
          colorbar: { title: { text: title, side: "right" }, thickness: 12, outlinewidth: 0 },
        },
      ],
      {
        height: Math.max(340, 110 + 20 * most),
        xaxis: axis("", { ...ticks, tickangle: -60 }),
        yaxis: axis("", { ...ticks, autorange: "reversed" }),
      },
    );
  }

  function drawLikeness() {
    const scale = [[0, colours.low], [1, colours.s1]];
    const values = known.likeness.correlation;
    drawMap("plot-likeness", known.likeness.features, values, scale, [0, 1], "|correlation|", ".2f");
  }

  function drawInteractions() {
    const { features, contrast } = known.interactions;
    const most = Math.max(...contrast.flat().map((value) => Math.abs(value || 0))) || 1;
    const scale = [[0, colours.s2], [0.5, colours.low], [1, colours.s1]];
    drawMap("plot-interactions", features, contrast, scale, [-most, most], "contrast", ".4f");
  }

  function drawStudy() {
    const { sizes, selectors, classifiers, accuracy, deviation, stability, suggested } = known.study;
    const lines = (rows) =>
      selectors.map((name, place) => ({
        type: "scatter",
        mode: "lines+markers",
        name: short(name),
        x: sizes,
        y: rows[place],
        line: { color: series(place), dash: DASHES[place % DASHES.length], width: 2 },
        marker: { symbol: SYMBOLS[place % SYMBOLS.length], size: 7 },
        hovertemplate: `${short(name, 40)}<br>%{x} features: %{y:.3f}<extra></extra>`,
      }));
    const legend = { showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, margin: { l: 56, r: 16, t: 48, b: 48 } };
    classifiers.forEach((_, classifier) => {
      const bands = selectors.map((name, place) => {
        const mean = accuracy[place][classifier];
        const spread = deviation[place][classifier].map((value) => value || 0);
        const y = [...mean.map((value, i) => value + spread[i]), ...mean.map((value, i) => value - spread[i]).reverse()];
        return {
          type: "scatter", x: [...sizes, ...[...sizes].reverse()], y, fill: "toself", fillcolor: series(place), opacity: 0.13,
          line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false,
        };
      });
      const traces = [...bands, ...lines(accuracy.map((rows) => rows[classifier]))];
      draw(`plot-study-${classifier}`, traces, {
        ...legend, height: 360, xaxis: sizeAxis(sizes), yaxis: axis("accuracy"), ...suggestion(suggested, `${suggested}`),
      });
    });
    draw("plot-stability", lines(stability.nogueira), {
      ...legend, height: 360, xaxis: sizeAxis(sizes), yaxis: axis("stability", { range: [Math.min(0, ...stability.nogueira.flat()) - 0.03, 1.05] }),
    });
  }

  function drawAll() {
    readColours();
    drawRanking();
    if (known.sizes) drawSizes();
    if (known.convergence) drawConvergence();
    if (known.alone) drawAlone();
    if (known.likeness) drawLikeness();
    if (known.interactions) drawInteractions();
    if (known.study) drawStudy();
  }

  // ---- the table of all features

  function makeTable() {
    const { columns, labels, decimals, wholeNumbers } = known.ranking;
    const keys = Object.keys(labels);
    const total = columns.feature.length;
    const table = byId("features");
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const collator = new Intl.Collator(undefined, { numeric: true });
    let sorted = { key: "rank", up: true };
    let page = 0;
    let perPage = known.rows_shown;
    let lowered = null;
    let view = [...Array(total).keys()];

    function shownText(key, value) {
      if (value === null) return "–";
      if (key === "feature") return value;
      if (key === "stands_out") return value ? "yes" : "";
      if (wholeNumbers.includes(key)) return whole(value);
      if (key === "p_value") return value < 0.0001 ? "<0.0001" : value.toFixed(4);
      return key === "cost" ? String(value) : value.toFixed(decimals).replace("-", "−");
    }

    function sortView() {
      const values = columns[sorted.key];
      const sign = sorted.up ? 1 : -1;
      const compare =
        sorted.key === "feature" ? (a, b) => sign * collator.compare(values[a], values[b]) : (a, b) => sign * (values[a] - values[b]);
      view.sort((a, b) => {
        if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null) || a - b;
        return compare(a, b) || a - b;
      });
    }

    function search(text) {
      const wanted = text.trim().toLowerCase();
      lowered = lowered || columns.feature.map((name) => name.toLowerCase());
      view = [];
      for (let row = 0; row < total; row++) if (!wanted || lowered[row].includes(wanted)) view.push(row);
      sortView();
      page = 0;
      show();
    }

    function rowOf(row) {
      const line = document.createElement("tr");
      for (const key of keys) {
        const cell = document.createElement(key === "feature" ? "th" : "td");
        if (key === "feature") cell.scope = "row";
        else cell.className = "number";
        cell.textContent = shownText(key, columns[key][row]);
        line.append(cell);
      }
      return line;
    }

    function show() {
      const pages = Math.max(1, Math.ceil(view.length / perPage));
      page = Math.min(Math.max(page, 0), pages - 1);
      const start = page * perPage;
      const rows = view.slice(start, start + perPage);
      body.replaceChildren(...rows.map(rowOf));
      byId("status").textContent = rows.length
        ? `${whole(start + 1)} to ${whole(start + rows.length)} of ${whole(view.length)}${view.length < total ? ` found among ${whole(total)}` : ""}`
        : "No feature has that in its name";
      byId("page").textContent = `Page ${whole(page + 1)} of ${whole(pages)}`;
      byId("first").disabled = byId("previous").disabled = page === 0;
      byId("next").disabled = byId("last").disabled = page === pages - 1;
      for (const head of heads) {
        if (head.dataset.key === sorted.key) head.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      }
    }

    for (const head of heads) {
      const key = head.dataset.key;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.tabIndex = 0;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const startsUp = ["rank", "feature", "bif", "fsdd"].includes(key);
        sorted = { key, up: sorted.key === key ? !sorted.up : startsUp };
        sortView();
        page = 0;
        show();
      });
    }
    let waiting = 0;
    byId("search").addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => search(event.target.value), total > 5000 ? 150 : 0);
    });
    byId("per-page").addEventListener("change", (event) => {
      perPage = Number(event.target.value);
      page = 0;
      show();
    });
    const turns = { first: () => 0, previous: () => page - 1, next: () => page + 1, last: () => Infinity };
    for (const [id, turn] of Object.entries(turns)) {
      byId(id).addEventListener("click", () => {
        page = turn();
        show();
      });
    }
    byId("tools").hidden = false;
    byId("pager").hidden = total <= perPage;
    show();
  }

  // ---- light, dark, paper

  function nameTheme() {
    byId("theme").textContent = isDark() ? "Light colours" : "Dark colours";
  }

  function keepTheme(theme) {
    root.dataset.theme = theme;
    try {
      localStorage.setItem("probewise-theme", theme);
    } catch {
      // a page opened from disk may not be allowed to remember
    }
  }

  try {
    const kept = localStorage.getItem("probewise-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch {
    // as above
  }
  byId("theme").hidden = false;
  byId("theme").addEventListener("click", () => {
    keepTheme(isDark() ? "light" : "dark");
    nameTheme();
    drawAll();
  });
  prefersDark.addEventListener("change", () => {
    nameTheme();
    drawAll();
  });
  let beforePrint;
  window.addEventListener("beforeprint", () => {
    beforePrint = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("paper"); // plots do not follow the width of a sheet by themselves
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    if (beforePrint) root.dataset.theme = beforePrint;
    else delete root.dataset.theme;
    root.classList.remove("paper");
    drawAll();
    for (const plot of document.querySelectorAll(".plot")) Plotly.Plots.resize(plot);
  });
  let wasNarrow = isNarrow();
  window.addEventListener("resize", () => {
    if (wasNarrow !== isNarrow()) {
      wasNarrow = isNarrow();
      drawAll();
    }
  });

  nameTheme();
  makeTable();
  drawAll();
  root.dataset.drawn = "yes";
})();
