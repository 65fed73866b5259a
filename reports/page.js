"use strict";
// Filters the rows that changed. Without this script they are a plain list.
for (const box of document.querySelectorAll("details.changes")) {
  const rows = [...box.querySelectorAll("li.row")];
  if (rows.length === 0) continue;
  const tools = box.querySelector(".tools");
  const buttons = [...box.querySelectorAll("button[data-filter]")];
  const search = box.querySelector("input[type=search]");
  const shown = box.querySelector(".shown");
  const texts = new Map();
  const text = row => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const fits = (row, filter) =>
    filter === "all" || (filter === "failed" ? "failed" in row.dataset : row.dataset.way === filter);
  let filter = "all";
  const apply = () => {
    const words = search.value.toLowerCase().trim();
    let n = 0;
    for (const row of rows) {
      row.hidden = !(fits(row, filter) && (words === "" || text(row).includes(words)));
      if (!row.hidden) n++;
    }
    for (const b of buttons) b.setAttribute("aria-pressed", String(b.dataset.filter === filter));
    shown.textContent = n + " of " + rows.length + " shown";
  };
  const choose = name => {
    if (buttons.some(b => b.dataset.filter === name)) filter = name;
    apply();
  };
  for (const b of buttons) {
    b.append(" " + rows.filter(row => fits(row, b.dataset.filter)).length);
    b.addEventListener("click", () => choose(b.dataset.filter));
  }
  search.addEventListener("input", apply);
  // The address may say what to show: #filter=worse&search=tuesday
  const follow = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (!wanted.has("filter") && !wanted.has("search")) return;
    search.value = wanted.get("search") || "";
    box.open = true;
    choose(wanted.get("filter") || "all");
  };
  addEventListener("hashchange", follow);
  tools.hidden = false;
  apply();
  follow();
}
