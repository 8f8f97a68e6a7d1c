// Tables that are sorted and filtered in the browser: from a data block of columns, or from their own rows.
(() => {
  "use strict";
  const RIGHT = new Set(["count", "number", "share", "seconds"]);

  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const missing = (value) => value === null || value === undefined || value === "";

  class Table {
    constructor(element, columns) {
      this.element = element;
      this.columns = columns;
      this.size = columns.length ? columns[0].values.length : 0;
      this.atOnce = Number(element.dataset.rows) || 15;
      this.page = 0;
      this.sorted = null;
      this.rows = Array.from({ length: this.size }, (_, row) => row);
      this.build();
      this.draw();
    }

    build() {
      const head = document.createElement("thead");
      const line = head.insertRow();
      this.heads = this.columns.map((column, place) => {
        const cell = document.createElement("th");
        cell.scope = "col";
        if (column.right || RIGHT.has(column.kind)) cell.className = "right";
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = column.title;
        if (column.hint) cell.title = column.hint;
        button.addEventListener("click", () => this.sort(place));
        cell.append(button);
        line.append(cell);
        return cell;
      });
      this.body = document.createElement("tbody");
      this.element.replaceChildren(head, this.body);
      this.element.before(this.tools());
    }

    tools() {
      const tools = document.createElement("div");
      tools.className = "table-tools";
      this.filter = document.createElement("input");
      this.filter.type = "search";
      this.filter.placeholder = "Filter rows, e.g. /news/ or >10";
      this.filter.setAttribute("aria-label", "Filter rows");
      this.filter.addEventListener("input", () => this.sift());
      this.filter.hidden = this.size < 6;
      this.told = document.createElement("span");
      this.told.className = "muted small push";
      this.told.setAttribute("aria-live", "polite");
      this.back = this.button("‹", "Rows before", () => this.turn(-1));
      this.forth = this.button("›", "More rows", () => this.turn(1));
      const save = this.button("CSV", "Save this table as CSV", () => this.save());
      tools.append(this.filter, this.told, this.back, this.forth, save);
      return tools;
    }

    button(text, label, act) {
      const made = document.createElement("button");
      made.type = "button";
      made.className = "button quiet";
      made.textContent = text;
      made.setAttribute("aria-label", label);
      made.title = label;
      made.addEventListener("click", act);
      return made;
    }

    // Numbers sort from the largest first, texts from A. What is not known comes last either way.
    sort(place) {
      const same = this.sorted && this.sorted.place === place;
      const first = RIGHT.has(this.columns[place].kind) || this.columns[place].kind === "time" ? -1 : 1;
      this.sorted = { place, way: same ? -this.sorted.way : first };
      this.heads.forEach((head, at) => {
        if (at === place) head.setAttribute("aria-sort", this.sorted.way > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      this.arrange();
    }

    // Every word must be in a row; ">3" or "<3" must hold for one of its numbers.
    sift() {
      const asked = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
        const found = /^([<>])=?(-?\d+(?:\.\d+)?)$/.exec(word);
        return found ? { way: found[1], than: Number(found[2]) } : { word };
      });
      const holds = (row) => asked.every((one) => this.columns.some((column) => {
        const value = column.values[row];
        if (missing(value)) return false;
        if (one.word === undefined) {
          return typeof value === "number" && (one.way === ">" ? value > one.than : value < one.than);
        }
        return this.text(column, row).toLowerCase().includes(one.word);
      }));
      this.rows = [];
      for (let row = 0; row < this.size; row += 1) if (holds(row)) this.rows.push(row);
      this.arrange();
    }

    arrange() {
      if (this.sorted) {
        const { place, way } = this.sorted;
        const values = this.columns[place].values;
        this.rows.sort((a, b) => {
          const [x, y] = [values[a], values[b]];
          if (missing(x) || missing(y)) return missing(x) - missing(y) || a - b;
          return way * compare(x, y) || a - b;
        });
      } else this.rows.sort((a, b) => a - b);
      this.page = 0;
      this.draw();
    }

    turn(way) {
      this.page = Math.min(Math.max(this.page + way, 0), Math.max(Math.ceil(this.rows.length / this.atOnce) - 1, 0));
      this.draw();
    }

    text(column, row) {
      return column.texts ? column.texts[row] : window.recrawl.format(column.kind, column.values[row]);
    }

    draw() {
      const first = this.page * this.atOnce;
      const shown = this.rows.slice(first, first + this.atOnce);
      this.body.replaceChildren(...shown.map((row) => this.line(row)));
      if (!shown.length) {
        const cell = this.body.insertRow().insertCell();
        cell.colSpan = this.columns.length;
        cell.className = "muted";
        cell.textContent = this.size ? "No row matches." : "There are no rows.";
      }
      const count = (value) => value.toLocaleString("en");
      const of = this.rows.length === this.size ? count(this.size) : `${count(this.rows.length)} of ${count(this.size)}`;
      this.told.textContent = shown.length ? `${count(first + 1)}–${count(first + shown.length)} of ${of}` : of;
      this.back.disabled = this.page === 0;
      this.forth.disabled = first + this.atOnce >= this.rows.length;
      const one = this.rows.length <= this.atOnce;
      this.back.hidden = this.forth.hidden = one;
    }

    line(row) {
      if (this.lines) return this.lines[row];
      const line = document.createElement("tr");
      for (const column of this.columns) {
        const cell = line.insertCell();
        if (RIGHT.has(column.kind)) cell.className = "right";
        if (column.kind === "url") cell.className = "url";
        if (column.kind === "time" || column.kind === "yes") cell.className = "nowrap";
        if (column.kind === "class") {
          const dot = document.createElement("span");
          dot.className = `dot ${String(column.values[row]).replace(/[^a-z]/g, "")}`;
          cell.className = "nowrap";
          cell.append(dot);
        }
        cell.append(this.text(column, row));
      }
      return line;
    }

    save() {
      const columns = {};
      for (const { title, kind, values } of this.columns) {
        columns[title] = this.rows.map((row) => (
          kind === "time" && !missing(values[row]) ? new Date(values[row] * 1000).toISOString() : values[row]));
      }
      const name = this.element.dataset.table || this.element.id || "table";
      window.recrawl.save(`${name}.csv`, window.recrawl.csv(columns), "text/csv");
    }
  }

  // A table written as markup: its rows stay the elements they are.
  const fromRows = (element) => {
    const lines = [...element.tBodies[0].rows];
    const columns = [...element.tHead.rows[0].cells].map((head, place) => {
      const cells = lines.map((line) => line.cells[place]);
      const texts = cells.map((cell) => cell.textContent.trim());
      const values = cells.map((cell, row) => {
        const raw = cell.dataset.value ?? texts[row];
        return raw !== "" && Number.isFinite(Number(raw)) ? Number(raw) : raw;
      });
      const right = head.classList.contains("right");
      return { title: head.textContent.trim(), kind: head.dataset.kind || "text", hint: head.title, right, values, texts };
    });
    const table = new Table(element, columns);
    table.lines = lines;
    table.draw();
  };

  const scan = (root) => {
    for (const element of root.querySelectorAll("table[data-table]:not([data-ready])")) {
      element.dataset.ready = "";
      window.recrawl.read(`data-${element.dataset.table}`).then((block) => new Table(element, block.columns));
    }
    for (const element of root.querySelectorAll("table.sortable:not([data-ready])")) {
      element.dataset.ready = "";
      if (element.tHead && element.tBodies[0]) fromRows(element);
    }
  };
  window.recrawl.tables = { scan };
  document.addEventListener("DOMContentLoaded", () => scan(document));
  document.addEventListener("htmx:afterSwap", (event) => scan(event.target instanceof Element ? event.target : document));
  if (document.readyState !== "loading") scan(document);
})();
