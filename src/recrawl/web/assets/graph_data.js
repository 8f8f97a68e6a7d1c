// The pages of a site as figures read them: addresses put together again, who hangs below whom, what is folded where.
(() => {
  "use strict";
  const { recrawl } = window;
  const ROOT = -1;

  // In the order of their numbers. Each has a colour and a shape of its own, and its name beside it in every list.
  const CLASSES = [
    { name: "unseen", words: "not observed again", sign: "○" },
    { name: "unchanged", words: "unchanged", sign: "●" },
    { name: "content", words: "content changed", sign: "▲" },
    { name: "links", words: "links changed", sign: "■" },
    { name: "missing", words: "gone", sign: "✕" },
    { name: "new", words: "new", sign: "◆" },
  ];

  const urlsOf = ({ shared, rest }) => {
    let before = "";
    return rest.map((end, place) => { before = before.slice(0, shared[place]) + end; return before; });
  };

  const readPages = (pages) => ({ ...pages, urls: urlsOf(pages.url), count: pages.url.rest.length });

  // The part of an address that tells it from its neighbours.
  const shortName = (url) => {
    const path = url.replace(/^[a-z]+:\/\//, "").replace(/\/+$/, "");
    const last = path.slice(path.lastIndexOf("/") + 1);
    return last.length > 32 ? `${last.slice(0, 31)}…` : last;
  };

  const readTree = (data) => {
    const pages = readPages(data.pages);
    const { parent, drawn } = data;
    const children = Array.from({ length: pages.count }, () => null);
    const roots = [];
    parent.forEach((up, page) => {
      if (up === ROOT) roots.push(page);
      else (children[up] ||= []).push(page);
    });
    // The page into which another is folded: the nearest above that is drawn.
    const holder = (page) => { let up = page; while (!drawn[up]) up = parent[up]; return up; };
    const foldedInto = (top) => {
      const waiting = (children[top] || []).filter((page) => !drawn[page]);
      for (let place = 0; place < waiting.length; place += 1) for (const page of children[waiting[place]] || []) waiting.push(page);
      return waiting;
    };
    const places = recrawl.site.layout({ drawn, children, roots, foldedInto });
    const disc = new Map(data.folded.page.map((page, place) => [page, { page, pages: data.folded.pages[place], ...places.disc.get(page) }]));
    const counts = CLASSES.map(() => 0);
    pages.change.forEach((change) => { counts[change] += 1; });
    return {
      pages, parent, drawn, children, roots, disc, holder, foldedInto, counts, x: places.x, y: places.y, radius: places.radius,
      versions: (page) => (data.versions
        ? data.versions.replace("{id}", pages.id[page]).replace("{url}", encodeURIComponent(pages.urls[page])) : null),
    };
  };

  // What is known of a page, as pairs of words.
  const factsOf = (pages, page) => {
    const rate = pages.rate[page];
    return [
      ["state", CLASSES[pages.change[page]].words],
      ["changes about every", rate > 0 ? recrawl.format("seconds", 1 / rate) : rate === 0 ? "never" : "not known"],
      ["last observed change", pages.changed[page] === null ? "none" : `${recrawl.format("time", pages.changed[page])} UTC`],
      ["last found", pages.seen[page] === null ? "never" : `${recrawl.format("time", pages.seen[page])} UTC`],
      ["times found", recrawl.format("count", pages.captures[page])],
      ["type", pages.mimes[pages.mime[page]] || "not known"],
    ];
  };

  // An element with attributes and children; texts are texts, never markup.
  const element = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...inside.filter((one) => one !== null));
    return made;
  };
  const sign = (change) => element("span", { class: `sign ${CLASSES[change].name}`, "aria-hidden": "true" }, CLASSES[change].sign);

  recrawl.site = { CLASSES, ROOT, readPages, readTree, shortName, factsOf, element, sign };
})();
