// Tables that copy: a selection inside one table, or a whole table by its button, as lines of
// tab-separated cells.

// A cell as a spreadsheet reads it: one line, and a hyphen as the sign of a number.
const cellText = (cell) => [...cell.childNodes]
  .map((node) => (node.nodeType === 3 || node.checkVisibility?.() !== false ? node.textContent : ""))
  .join(" ").replace(/\s+/g, " ").trim().replace(/−(?=\d)/g, "-");

// Cells that span columns or rows leave empty fields, so that every line has the same columns.
function tabbed(table, wanted = () => true) {
  const lines = [];
  const taken = [];
  for (const row of table.rows) {
    const line = [];
    const below = taken.shift() || [];
    let column = 0;
    let any = false;
    for (const cell of row.cells) {
      while (below[column]) line[column++] = "";
      const kept = wanted(cell);
      any ||= kept;
      line[column] = kept ? cellText(cell) : "";
      for (let down = 1; down < cell.rowSpan; down += 1) {
        taken[down - 1] ||= [];
        for (let i = 0; i < cell.colSpan; i += 1) taken[down - 1][column + i] = true;
      }
      for (let i = 1; i < cell.colSpan; i += 1) line[column + i] = "";
      column += cell.colSpan;
    }
    if (any) lines.push(line);
  }
  const width = Math.max(...lines.map((line) => line.length));
  // What was not selected on the left of all lines is no column of the selection.
  const first = Math.min(...lines.map((line) => [...line].findIndex(Boolean)).filter((at) => at >= 0));
  return lines.map((line) => Array.from({ length: width }, (_, i) => line[i] ?? "")
    .slice(Number.isFinite(first) ? first : 0).join("\t")).join("\n");
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* no such thing here, or not allowed: the old way */ }
  const given = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  document.addEventListener("copy", given, { capture: true, once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", given, { capture: true });
  return done;
}

function copies(table) {
  const button = el("button", { type: "button", class: "copy" }, "Copy table");
  const caption = table.caption ? cellText(table.caption) : "";
  button.setAttribute("aria-label", `Copy table: ${caption}`);
  button.addEventListener("click", async () => {
    const done = await copyText(tabbed(table));
    button.textContent = done ? "Copied" : "Not copied";
    announce(done ? `Copied ${table.rows.length} rows as tab-separated text`
      : "The browser did not let the page copy; select the table and copy it");
    setTimeout(() => { button.textContent = "Copy table"; }, 2000);
  });
  return button;
}

document.addEventListener("copy", (event) => {
  const selection = document.getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0);
  const at = range.commonAncestorContainer;
  const table = (at.nodeType === 1 ? at : at.parentElement).closest("table");
  // Inside one cell, and beyond a table, the browser copies as it always does.
  if (!table || (at.nodeType === 1 ? at : at.parentElement).closest("th, td")) return;
  const text = tabbed(table, (cell) => range.intersectsNode(cell));
  event.clipboardData.setData("text/plain", text);
  const held = el("div");
  held.append(range.cloneContents());
  event.clipboardData.setData("text/html", `<table>${held.innerHTML}</table>`);
  event.preventDefault();
});
