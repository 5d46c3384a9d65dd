// The table of all features: sorted, searched, turned over, copied and downloaded.

function makeTable() {
  const { columns, shown, decimals, wholeNumbers } = known.ranking;
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

  function cellText(key, row) {
    const value = columns[key][row];
    if (value === null) return "–";
    if (typeof value === "string") return value;
    if (key === "stands_out" || key === "kept") return value ? "yes" : "";
    if (key === "rank_low") return value === columns.rank_high[row] ? whole(value) : `${whole(value)} to ${whole(columns.rank_high[row])}`;
    if (key === "p_value" && value < 0.0001) return "<0.0001";
    return wholeNumbers.includes(key) ? whole(value) : written(value, decimals[key]);
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
    for (const key of shown) {
      const cell = document.createElement(key === "feature" ? "th" : "td");
      if (key === "feature") cell.scope = "row";
      else if (typeof columns[key][row] !== "string") cell.className = "number";
      if (["higher_in", "difference", "correlation"].includes(key) && known.ways[row]) cell.title = known.ways[row];
      const text = cellText(key, row);
      if (key === "feature") {
        const name = document.createElement("div"); // long names are cut off by the style
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
      const startsUp = ["rank", "feature", "higher_in", "lower_in", "rank_low", "p_value", "bif", "fsdd"].includes(key);
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

// ---- out of the page

function topNames() {
  const { feature } = known.ranking.columns;
  const many = Math.min(Math.max(1, Math.round(Number(byId("how-many").value)) || 1), feature.length);
  return feature.slice(0, many);
}

function quotedCell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (typeof value === "string") text = text.replace(/^([=@\t\r]|[+-].*[(|!])/, "'$1"); // no formula of a spreadsheet
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function rankingAsCsv() {
  const { columns } = known.ranking;
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
    const field = document.createElement("textarea"); // where a page from disk may not use the clipboard
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

function makeTakeaway() {
  byId("how-many").max = known.ranking.columns.feature.length;
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
  byId("takeaway").hidden = false;
}
