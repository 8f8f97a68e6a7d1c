// The same tree as a list that is read aloud and walked through by keys: arrows, Home, End, Enter.
(() => {
  "use strict";
  const { recrawl } = window;
  const { CLASSES, element, sign, shortName } = recrawl.site;
  const AT_ONCE = 100;

  // Entries: {page} for a page, {folded: page} for what is folded into it.
  recrawl.site.list = (box, tree, choose) => {
    const list = element("ul", { role: "tree", class: "graph-list", "aria-label": "Pages as a tree" });
    const entries = new WeakMap();
    const shown = new Map();
    box.append(list);

    const below = ({ page, folded }) => {
      if (folded !== undefined) return tree.children[folded].filter((one) => !tree.drawn[one]).map((one) => ({ page: one }));
      const all = tree.children[page] || [];
      const plain = all.filter((one) => !tree.drawn[page] || tree.drawn[one]).map((one) => ({ page: one }));
      return tree.disc.has(page) ? [...plain, { folded: page }] : plain;
    };
    const keyOf = ({ page, folded }) => (folded === undefined ? `p${page}` : `f${folded}`);
    const label = ({ page, folded }) => {
      if (folded !== undefined) {
        const count = recrawl.format("count", tree.disc.get(folded).pages);
        return [sign(1), element("span", { class: "name" }, `${count} unchanged, folded`)];
      }
      const change = tree.pages.change[page];
      const name = tree.parent[page] < 0 ? tree.pages.urls[page] : shortName(tree.pages.urls[page]);
      return [sign(change), element("span", { class: "name", title: tree.pages.urls[page] }, name),
        element("span", { class: "visually-hidden" }, `, ${CLASSES[change].words}`)];
    };

    const itemOf = (entry, level) => {
      const line = element("div", { class: "line" }, element("span", { class: "twist", "aria-hidden": "true" }), ...label(entry));
      const item = element("li", { role: "treeitem", tabindex: "-1", "aria-level": level, "aria-selected": "false",
        "aria-expanded": below(entry).length ? "false" : null }, line);
      entries.set(item, entry);
      shown.set(keyOf(entry), item);
      return item;
    };
    // Some entries at a time, and a line that brings more of them, or the one that is looked for before its turn.
    const add = (group, found, level, from = 0) => {
      let at = from;
      for (let made = 0; at < found.length && made < AT_ONCE; at += 1) {
        if (shown.has(keyOf(found[at]))) continue;
        group.append(itemOf(found[at], level));
        made += 1;
      }
      let rest = 0;
      for (let place = at; place < found.length; place += 1) if (!shown.has(keyOf(found[place]))) rest += 1;
      if (!rest) return;
      const words = document.createTextNode("");
      const more = element("li", { role: "treeitem", tabindex: "-1", "aria-level": level, class: "more" },
        element("div", { class: "line" }, element("span", { class: "twist" }), words));
      const tell = () => { words.data = `${recrawl.format("count", rest)} more …`; };
      tell();
      entries.set(more, {
        more: () => { const before = more.previousElementSibling; more.remove(); add(group, found, level, at); return before.nextElementSibling; },
        reveal: (key) => {
          const entry = found.find((one) => keyOf(one) === key);
          if (!entry) return;
          more.before(itemOf(entry, level));
          rest -= 1;
          if (rest) tell();
          else more.remove();
        },
      });
      group.append(more);
    };

    const open = (item, isOpen = true) => {
      if (!item.hasAttribute("aria-expanded")) return;
      item.setAttribute("aria-expanded", String(isOpen));
      if (isOpen && !item.querySelector(":scope > ul")) {
        const group = element("ul", { role: "group" });
        item.append(group);
        add(group, below(entries.get(item)), Number(item.getAttribute("aria-level")) + 1);
      }
    };
    const focus = (item, quiet = false) => {
      for (const one of list.querySelectorAll('[tabindex="0"]')) one.setAttribute("tabindex", "-1");
      item.setAttribute("tabindex", "0");
      if (!quiet) item.focus({ preventScroll: true });
      const line = item.querySelector(".line");
      const [top, low] = [line.offsetTop - list.offsetTop, line.offsetTop - list.offsetTop + line.offsetHeight];
      if (top < list.scrollTop || low > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
    };
    const mark = (item) => {
      for (const one of list.querySelectorAll('[aria-selected="true"]')) one.setAttribute("aria-selected", "false");
      item.setAttribute("aria-selected", "true");
    };
    const act = (item) => {
      const entry = entries.get(item);
      if (entry.more) { focus(entry.more()); return; }
      mark(item);
      if (entry.folded !== undefined) open(item, item.getAttribute("aria-expanded") !== "true");
      choose(entry);
    };

    list.addEventListener("click", (event) => {
      const item = event.target.closest('[role="treeitem"]');
      if (!item) return;
      focus(item);
      if (event.target.closest(".twist") && item.hasAttribute("aria-expanded")) open(item, item.getAttribute("aria-expanded") !== "true");
      else act(item);
    });
    const visible = () => [...list.querySelectorAll('[role="treeitem"]')].filter((one) => !one.parentElement.closest('[aria-expanded="false"]'));
    list.addEventListener("keydown", (event) => {
      const item = event.target.closest('[role="treeitem"]');
      if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
      const all = visible();
      const place = all.indexOf(item);
      const isOpen = item.getAttribute("aria-expanded");
      const moves = {
        ArrowDown: () => all[place + 1], ArrowUp: () => all[place - 1], Home: () => all[0], End: () => all[all.length - 1],
        ArrowRight: () => { if (isOpen === "false") { open(item); return item; } return item.querySelector(":scope > ul > li"); },
        ArrowLeft: () => { if (isOpen === "true") { open(item, false); return item; } return item.parentElement.closest('[role="treeitem"]'); },
        Enter: () => { act(item); return null; }, " ": () => { act(item); return null; },
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      const next = moves[event.key]();
      if (next) focus(next);
    });

    // Unroll the list up to a page and mark it, without taking the focus.
    const show = (page) => {
      const way = [];
      for (let up = page; up >= 0; up = tree.parent[up]) {
        way.unshift(`p${up}`);
        if (!tree.drawn[up] && tree.drawn[tree.parent[up]]) way.unshift(`f${tree.parent[up]}`);
      }
      let item = null;
      way.forEach((key, place) => {
        const more = !shown.has(key) && (item ? item.querySelector(":scope > ul > .more") : list.querySelector(":scope > .more"));
        if (more) entries.get(more).reveal(key);
        item = shown.get(key) || item;
        if (item && place < way.length - 1) open(item);
      });
      if (item) { mark(item); focus(item, true); }
    };

    add(list, tree.roots.map((page) => ({ page })), 1);
    const first = list.firstElementChild;
    if (first) { first.setAttribute("tabindex", "0"); if (tree.roots.length === 1) open(first); }
    return { show };
  };
})();
