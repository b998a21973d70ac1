"use strict";
// Sort and filter the table of variants, and open the details that a link leads to.
(() => {
  const value = (cell) => {
    const number = cell.querySelector("[data-value]");
    return number ? Number(number.dataset.value) : cell.textContent.trim();
  };
  const compare = (one, two) => {
    if (one === two) return 0;
    if (one === "") return 1; // what was not measured comes last
    if (two === "") return -1;
    return typeof one === "number" && typeof two === "number" ? one - two : String(one).localeCompare(String(two));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = header.textContent;
      header.replaceChildren(button);
      button.addEventListener("click", () => {
        const falling = header.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("th[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row.cells[column]), row]);
        rows.sort((one, two) => {
          const order = compare(one[0], two[0]);
          return falling && one[0] !== "" && two[0] !== "" ? -order : order;
        });
        body.append(...rows.map((each) => each[1]));
      });
    });
  }
  const filter = document.getElementById("filter");
  if (filter) {
    const rows = [...document.querySelector("#variants tbody").rows];
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += row.hidden ? 0 : 1;
      }
      document.getElementById("rows").textContent = `${left} of ${rows.length} rows`;
    });
  }
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
})();
