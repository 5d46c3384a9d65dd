// The table of all features: sorting, search, pages, copying and downloads.

function makeTable() {
  const { columns, shown, decimals, integers } = report.ranking;
  const total = columns.feature.length;
  const table = byId("features");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator(undefined, { numeric: true });
  let sorted = { key: "rank", up: true };
  let page = 0;
  let perPage = report.rows_shown;
  let lowercase = null;
  let view = [...Array(total).keys()];

  function cellText(key, row) {
    const value = columns[key][row];
    if (value === null) return "–";
    if (typeof value === "string") return value;
    if (["related", "needed", "selected"].includes(key)) return value ? "yes" : "";
    if (key.startsWith("q_") && value < 0.0001) return "<0.0001";
    if (key === "selected_in") return `${Math.round(100 * value)}%`;
    if (key === "rank_low") return value === columns.rank_high[row] ? whole(value) : `${whole(value)} to ${whole(columns.rank_high[row])}`;
    return integers.includes(key) ? whole(value) : written(value, decimals[key]);
  }

  function sortView() {
    const values = columns[sorted.key];
    const sign = sorted.up ? 1 : -1;
    const isText = values.some((value) => typeof value === "string");
    const compare = isText ? (a, b) => sign * collator.compare(values[a], values[b]) : (a, b) => sign * (values[a] - values[b]);
    view.sort((a, b) => {
      if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null) || a - b;
      return compare(a, b) || a - b;
    });
  }

  function search(text) {
    const query = text.trim().toLowerCase();
    lowercase = lowercase || columns.feature.map((name) => name.toLowerCase());
    view = [];
    for (let row = 0; row < total; row++) if (!query || lowercase[row].includes(query)) view.push(row);
    sortView();
    page = 0;
    show();
  }

  function rowOf(row) {
    const line = document.createElement("tr");
    for (const key of shown) {
      const cell = document.createElement(key === "feature" ? "th" : "td");
      if (key === "feature") cell.scope = "row";
      else if (!["cluster", "higher_in", "lower_in"].includes(key)) cell.className = "number";
      if (["higher_in", "difference", "correlation"].includes(key) && report.directions[row]) cell.title = report.directions[row];
      const text = cellText(key, row);
      if (key === "feature") {
        const name = document.createElement("div"); // the style sheet truncates long names
        name.className = "name";
        name.title = text;
        name.textContent = text;
        cell.append(name);
      } else cell.textContent = text;
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
      ? `${whole(start + 1)} to ${whole(start + rows.length)} of ${whole(view.length)}${view.length < total ? ` found in ${whole(total)}` : ""}`
      : "No feature name matches";
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
      const startsUp = ["rank", "feature", "higher_in", "lower_in", "rank_low", "q_related", "q_needed", "bif", "fsdd"].includes(key);
      sorted = { key, up: sorted.key === key ? !sorted.up : startsUp };
      sortView();
      page = 0;
      show();
    });
  }
  let timer = 0;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => search(event.target.value), total > 5000 ? 150 : 0);
  });
  byId("per-page").addEventListener("change", (event) => {
    perPage = Number(event.target.value);
    page = 0;
    show();
  });
  const pageAfter = { first: () => 0, previous: () => page - 1, next: () => page + 1, last: () => Infinity };
  for (const [id, target] of Object.entries(pageAfter)) {
    byId(id).addEventListener("click", () => {
      page = target();
      show();
    });
  }
  byId("tools").hidden = false;
  byId("pager").hidden = total <= perPage;
  show();
}

// ---- export

function topNames() {
  const { feature } = report.ranking.columns;
  const count = Math.min(Math.max(1, Math.round(Number(byId("how-many").value)) || 1), feature.length);
  return feature.slice(0, count);
}

function quotedCell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (typeof value === "string") text = text.replace(/^([=@\t\r]|[+-].*[(|!])/, "'$1"); // no formulas in a spreadsheet
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function rankingAsCsv() {
  const { columns } = report.ranking;
  const keys = ["feature", ...Object.keys(columns).filter((key) => key !== "feature")];
  const lines = columns.feature.map((_, row) => keys.map((key) => quotedCell(columns[key][row])).join(","));
  return [keys.join(","), ...lines, ""].join("\n");
}

function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea"); // a page opened from disk may not use the clipboard
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

function makeExport() {
  byId("how-many").max = report.ranking.columns.feature.length;
  byId("copy-names").addEventListener("click", async () => {
    const names = topNames();
    await copy(`${names.join("\n")}\n`);
    byId("copied").textContent = names.length === 1 ? "1 name copied" : `${whole(names.length)} names copied`;
  });
  byId("save-names").addEventListener("click", () => {
    const names = topNames();
    download(`top-${names.length}.txt`, `${names.join("\n")}\n`, "text/plain");
  });
  byId("save-ranking").addEventListener("click", () => download("ranking.csv", rankingAsCsv(), "text/csv"));
  byId("export").hidden = false;
}
