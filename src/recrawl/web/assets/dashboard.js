// The dashboard beside htmx: keys that jump between pages, and figures and tables in parts that come later.
(() => {
  "use strict";
  document.addEventListener("htmx:after:swap", () => {
    const { recrawl } = window;
    if (recrawl.charts) recrawl.charts.scan(document);
    if (recrawl.tables) recrawl.tables.scan(document);
  });

  // "/" goes to the search of a page, "g" and a letter to another page, as the navigation begins with it.
  let waiting = 0;
  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "/") {
      const search = document.querySelector('input[type="search"]');
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "g") {
      waiting = event.timeStamp;
    } else if (waiting && event.timeStamp - waiting < 1500) {
      waiting = 0;
      const places = [...document.querySelectorAll(".bar nav a")];
      const place = places.find((one) => one.textContent.trim().toLowerCase().startsWith(event.key.toLowerCase()));
      if (place) place.click();
    }
  });
})();
