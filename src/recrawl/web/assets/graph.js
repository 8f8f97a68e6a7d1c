// The site graph: sigma draws it, discs unfold at a click, pages are found by address, a list beside says the same.
(() => {
  "use strict";
  const { recrawl } = window;
  const { CLASSES, SHAPE, element, sign, shortName, factsOf, files } = recrawl.site;
  const DOT = 0.4;
  const MANY = 20000;
  const LEAST = 16;
  const MOST_FOUND = 30;

  const nameOf = (page) => `p${page}`;
  const discOf = (page) => `f${page}`;
  const pageOf = (node) => Number(node.slice(1));
  const isDisc = (node) => node[0] === "f";

  // What sigma draws: pages and discs with their places. Nothing ever moves.
  const build = (tree) => {
    const graph = new window.graphology.Graph({ type: "directed", multi: false, allowSelfLoops: false });
    const { pages, parent, children } = tree;
    const addPage = (page) => {
      const change = pages.change[page];
      graph.addNode(nameOf(page), { x: tree.x[page], y: tree.y[page], size: change === 1 ? DOT : DOT * 1.25, shape: change, change,
        label: children[page] || parent[page] < 0 || change > 1 ? shortName(pages.urls[page]) : null, zIndex: change === 1 ? 1 : 2 });
    };
    const addEdge = (page) => {
      if (parent[page] >= 0) graph.addEdgeWithKey(`e${page}`, nameOf(parent[page]), nameOf(page), {});
    };
    tree.drawn.forEach((drawn, page) => { if (drawn) addPage(page); });
    tree.drawn.forEach((drawn, page) => { if (drawn) addEdge(page); });
    for (const disc of tree.disc.values()) {
      graph.addNode(discOf(disc.page), { x: disc.x, y: disc.y, size: disc.radius, shape: SHAPE.folded, change: 1,
        label: `${recrawl.format("count", disc.pages)} unchanged`, zIndex: 0 });
      graph.addEdgeWithKey(`d${disc.page}`, nameOf(disc.page), discOf(disc.page), {});
    }
    const unfolded = new Set();
    const unfold = (top) => {
      if (unfolded.has(top)) return;
      unfolded.add(top);
      const found = tree.foldedInto(top);
      found.forEach(addPage);
      found.forEach(addEdge);
      graph.setNodeAttribute(discOf(top), "shape", SHAPE.unfolded);
    };
    const fold = (top) => {
      if (!unfolded.delete(top)) return;
      tree.foldedInto(top).forEach((page) => graph.dropNode(nameOf(page)));
      graph.setNodeAttribute(discOf(top), "shape", SHAPE.folded);
    };
    return { graph, unfold, fold, isUnfolded: (top) => unfolded.has(top) };
  };

  const legend = (tree, pick) => {
    const box = element("div", { class: "graph-legend", role: "group", "aria-label": "Show only" });
    CLASSES.forEach((one, change) => {
      if (!tree.counts[change]) return;
      const button = element("button", { type: "button", class: "button quiet", "aria-pressed": "false", "data-class": one.name },
        sign(change), `${one.words} `, element("b", {}, recrawl.format("count", tree.counts[change])));
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        for (const other of box.children) other.setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", String(on));
        pick(on ? change : null);
      });
      box.append(button);
    });
    return box;
  };

  const facts = (tree, page) => {
    const lines = factsOf(tree.pages, page).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
    const link = tree.versions(page);
    const ours = link && link.startsWith("http://127.0.0.1:") ? element("span", { class: "muted" }, " (while recrawl serve runs)") : "";
    return [element("p", { class: "mono url" }, tree.pages.urls[page]), element("dl", {}, ...lines),
      link ? element("p", {}, element("a", { href: link }, "All versions of this page"), ours) : null];
  };

  const frame = (box) => {
    const parts = {
      search: element("input", { type: "search", placeholder: "Find a page by its URL", "aria-label": "Find a page by its URL", spellcheck: "false" }),
      found: element("ul", { class: "graph-found", hidden: true }),
      tools: element("div", { class: "graph-tools" }),
      stage: element("div", { class: "graph-stage", role: "img", "aria-label": "Graph of the site. The list beside it has the same content." }),
      tip: element("div", { class: "graph-tip", hidden: true }),
      side: element("div", { class: "graph-side" }),
      facts: element("div", { class: "graph-facts", "aria-live": "polite" }, element("p", { class: "muted" }, "Select a page to see its details; click a disc to unfold it.")),
    };
    const stage = element("div", { class: "graph-picture" }, parts.stage, parts.tip);
    box.classList.add("graph-box");
    box.replaceChildren(element("div", { class: "graph-bar" }, element("div", { class: "graph-search" }, parts.search, parts.found), parts.tools),
      element("div", { class: "graph-body" }, stage, element("div", { class: "graph-aside" }, parts.facts, parts.side)));
    return parts;
  };

  const tool = (parts, words, title, act) => {
    const button = element("button", { type: "button", class: "button", title }, words);
    button.addEventListener("click", act);
    parts.tools.append(button);
    return button;
  };

  // The extent of the graph in both directions. A few pages are drawn small, not as large as the graph.
  const extentOf = (tree) => {
    const extent = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
    const grow = (side, low, high) => { extent[side] = [Math.min(extent[side][0], low), Math.max(extent[side][1], high)]; };
    tree.x.forEach((x, page) => { grow("x", x - 1, x + 1); grow("y", tree.y[page] - 1, tree.y[page] + 1); });
    for (const { x, y, radius } of tree.disc.values()) { grow("x", x - radius, x + radius); grow("y", y - radius, y + radius); }
    for (const side of ["x", "y"]) {
      const [low, high] = extent[side];
      const room = Math.max(LEAST - (high - low), 0) / 2;
      extent[side] = [low - room, high + room];
    }
    return extent;
  };

  // A colour between two, both as #rrggbb.
  const between = (one, other, share) => {
    const parts = (text) => [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
    const [from, to] = [parts(one), parts(other)];
    return `#${from.map((value, place) => Math.round(value + share * (to[place] - value)).toString(16).padStart(2, "0")).join("")}`;
  };

  const startSigma = (graph, stage, tree, look) => {
    const large = tree.pages.count > MANY;
    const sigma = new window.Sigma(graph, stage, {
      defaultNodeType: "mark", nodeProgramClasses: { mark: recrawl.site.Marks }, itemSizesReference: "positions", zoomToSizeRatioFunction: (ratio) => ratio,
      edgeProgramClasses: { line: large ? window.Sigma.rendering.EdgeLineProgram : window.Sigma.rendering.EdgeRectangleProgram },
      minEdgeThickness: 1.3, zIndex: true, stagePadding: 16, allowInvalidContainer: true, enableCameraRotation: false, hideEdgesOnMove: large, hideLabelsOnMove: large,
      labelRenderedSizeThreshold: 7, labelDensity: 0.7, labelGridCellSize: 120, labelSize: 12, labelFont: "system-ui, sans-serif",
      minCameraRatio: Math.min(0.5, 4 / tree.radius), maxCameraRatio: 1.5, defaultDrawNodeHover: look.hover, defaultDrawNodeLabel: look.label,
      nodeReducer: look.node, edgeReducer: () => ({ color: look.line, size: 0.06 }),
    });
    sigma.setCustomBBox(extentOf(tree));
    sigma.refresh();
    return sigma;
  };

  const makeLook = () => {
    const look = { only: null, chosen: null };
    look.read = () => {
      look.colours = CLASSES.map((one) => recrawl.colour(one.name));
      look.line = between(recrawl.colour("line"), recrawl.colour("muted"), recrawl.isDark() ? 0.35 : 0.55);
      look.faint = recrawl.colour("line");
      look.ink = recrawl.colour("ink");
      look.paper = recrawl.colour("paper");
      look.ring = recrawl.colour("accent");
    };
    look.node = (node, data) => {
      const off = look.only !== null && data.change !== look.only;
      const result = { ...data, type: "mark", color: off ? look.faint : look.colours[data.change] };
      if (off) { result.label = null; result.zIndex = 0; }
      if (node === look.chosen) { result.zIndex = 3; result.highlighted = true; result.forceLabel = true; }
      return result;
    };
    look.hover = (context, data) => {
      context.beginPath();
      context.arc(data.x, data.y, Math.max(data.size, 3) + 3, 0, 2 * Math.PI);
      context.strokeStyle = look.ring;
      context.lineWidth = 2.5;
      context.stroke();
    };
    // The words of a disc stand inside it, if there is room; those of a page beside it.
    look.label = (context, data, settings) => {
      if (!data.label) return;
      context.font = `${settings.labelSize}px ${settings.labelFont}`;
      context.fillStyle = look.ink;
      const { width } = context.measureText(data.label);
      if (data.shape >= SHAPE.folded) {
        if (width < 1.9 * data.size && data.shape === SHAPE.folded) context.fillText(data.label, data.x - width / 2, data.y + settings.labelSize / 3);
        return;
      }
      context.strokeStyle = look.paper;
      context.lineWidth = 3;
      const [x, y] = [data.x + data.size + 4, data.y + settings.labelSize / 3];
      context.strokeText(data.label, x, y);
      context.fillText(data.label, x, y);
    };
    look.read();
    return look;
  };

  // The wheel scrolls the page until the graph has the focus, or Ctrl is held.
  const tameWheel = (stage) => {
    let held = false;
    stage.addEventListener("pointerdown", () => { held = true; });
    stage.addEventListener("pointerleave", () => { held = false; });
    stage.addEventListener("wheel", (event) => { if (!held && !event.ctrlKey) event.stopPropagation(); }, { capture: true, passive: true });
  };

  const wireSearch = (parts, tree, choose) => {
    const { search, found } = parts;
    const look = () => {
      const text = search.value.trim().toLowerCase();
      const hits = [];
      let more = 0;
      if (text) tree.pages.urls.forEach((url, page) => { if (url.toLowerCase().includes(text)) { if (hits.length < MOST_FOUND) hits.push(page); else more += 1; } });
      found.replaceChildren(...hits.map((page) => {
        const button = element("button", { type: "button", class: "hit" }, sign(tree.pages.change[page]), tree.pages.urls[page]);
        button.addEventListener("click", () => { found.hidden = true; choose(page); });
        return element("li", {}, button);
      }));
      if (text && !hits.length) found.append(element("li", { class: "muted" }, "No URL contains this text."));
      if (more) found.append(element("li", { class: "muted" }, `and ${recrawl.format("count", more)} more`));
      found.hidden = !text;
    };
    search.addEventListener("input", look);
    search.addEventListener("focus", look);
    search.addEventListener("keydown", (event) => {
      if (event.key === "Escape") found.hidden = true;
      if (event.key === "Enter") found.querySelector("button")?.click();
      if (event.key === "ArrowDown") { event.preventDefault(); found.querySelector("button")?.focus(); }
    });
    found.addEventListener("keydown", (event) => {
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (event.key === "Escape") { found.hidden = true; search.focus(); }
      if (!step) return;
      event.preventDefault();
      (event.target.closest("li")[step]?.querySelector("button") || search).focus();
    });
    document.addEventListener("click", (event) => { if (!parts.search.parentElement.contains(event.target)) found.hidden = true; });
  };

  const wireTip = (parts, sigma, tree, drawing) => {
    const { tip, stage } = parts;
    sigma.on("enterNode", ({ node }) => {
      const page = pageOf(node);
      const words = isDisc(node)
        ? [element("p", {}, `${recrawl.format("count", tree.disc.get(page).pages)} pages below ${tree.pages.urls[page]}, all unchanged.`),
          element("p", { class: "muted" }, drawing.isUnfolded(page) ? "Click to fold them again." : "Click to unfold them.")]
        : [...facts(tree, page), element("p", { class: "muted" }, tree.versions(page) ? "Click to keep this beside, with a link to all versions." : "Click to keep this beside.")];
      tip.replaceChildren(...words.filter((one) => one !== null));
      tip.hidden = false;
      stage.style.cursor = "pointer";
    });
    sigma.on("leaveNode", () => { tip.hidden = true; stage.style.cursor = ""; });
    stage.addEventListener("pointermove", (event) => {
      const area = stage.getBoundingClientRect();
      const [x, y] = [event.clientX - area.left, event.clientY - area.top];
      tip.style.left = `${Math.max(4, Math.min(x + 14, area.width - tip.offsetWidth - 4))}px`;
      tip.style.top = `${y + 18 + tip.offsetHeight > area.height ? Math.max(4, y - tip.offsetHeight - 12) : y + 18}px`;
    });
  };

  // WebGL content is missing in print, so an image replaces it.
  const wirePrint = (parts, sigma) => {
    const before = () => {
      parts.stage.parentElement.querySelector(".graph-print")?.remove();
      parts.stage.after(element("img", { class: "graph-print", src: files.png(sigma), alt: "Graph of the site" }));
    };
    const after = () => parts.stage.parentElement.querySelector(".graph-print")?.remove();
    window.addEventListener("beforeprint", before);
    window.addEventListener("afterprint", after);
    return () => { window.removeEventListener("beforeprint", before); window.removeEventListener("afterprint", after); };
  };

  const NOTHING = { csv: () => ({ url: [] }), png: () => "data:,", svg: () => "" };
  const ask = async (address) => {
    try {
      const answer = await fetch(address, { credentials: "same-origin", headers: { accept: "application/json" } });
      return answer.ok ? await answer.json() : null;
    } catch { return null; }
  };

  const draw = async (box, given) => {
    const data = given.src ? await ask(given.src) : given;
    if (!data) {
      box.replaceChildren(element("p", { class: "empty" }, "The pages of this graph could not be read. Reload to try again."));
      return NOTHING;
    }
    if (!data.parent || !data.parent.length) {
      box.replaceChildren(element("p", { class: "empty" }, "There is no page to draw yet."));
      return NOTHING;
    }
    const tree = recrawl.site.readTree(data);
    const parts = frame(box);
    const look = makeLook();
    const drawing = build(tree);
    let sigma = null;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const lookAt = (node, ratio) => {
      if (!sigma) return;
      const at = sigma.getNodeDisplayData(node);
      if (still) sigma.getCamera().setState({ x: at.x, y: at.y, ratio });
      else sigma.getCamera().animate({ x: at.x, y: at.y, ratio }, { duration: 450 });
    };
    const choose = (page, fromList = false) => {
      if (!tree.drawn[page]) drawing.unfold(tree.holder(page));
      look.chosen = nameOf(page);
      parts.facts.replaceChildren(...facts(tree, page).filter((one) => one !== null));
      if (sigma) { sigma.refresh(); lookAt(nameOf(page), Math.min(sigma.getCamera().ratio, Math.max(0.02, 12 / tree.radius))); }
      if (!fromList) list.show(page);
    };
    const list = recrawl.site.list(parts.side, tree, (entry) => {
      if (entry.folded === undefined) { choose(entry.page, true); return; }
      drawing.unfold(entry.folded);
      if (sigma) { sigma.refresh(); lookAt(discOf(entry.folded), Math.min(0.9, (1.6 * tree.disc.get(entry.folded).radius) / tree.radius + 0.02)); }
    });
    const refresh = () => sigma && sigma.refresh();
    let unwire = () => null;
    if (recrawl.site.Marks) try {
      sigma = startSigma(drawing.graph, parts.stage, tree, look);
    } catch { sigma = null; }
    if (!sigma) parts.stage.replaceChildren(element("p", { class: "empty" }, "This browser cannot draw with WebGL. The list beside has all pages."));
    else {
      tameWheel(parts.stage);
      unwire = wirePrint(parts, sigma);
      wireTip(parts, sigma, tree, drawing);
      sigma.on("clickNode", ({ node }) => {
        const page = pageOf(node);
        if (!isDisc(node)) { choose(page); return; }
        if (drawing.isUnfolded(page)) drawing.fold(page);
        else drawing.unfold(page);
        refresh();
      });
      const camera = sigma.getCamera();
      tool(parts, "+", "Nearer", () => camera.animatedZoom({ duration: 200 }));
      tool(parts, "−", "Zoom out", () => camera.animatedUnzoom({ duration: 200 }));
      tool(parts, "Whole graph", "Show everything", () => camera.animatedReset({ duration: 300 }));
      if (tree.disc.size) {
        tool(parts, "Unfold all", "Draw every page", () => { for (const page of tree.disc.keys()) drawing.unfold(page); refresh(); });
        tool(parts, "Fold all", "Fold what is unchanged", () => { for (const page of tree.disc.keys()) drawing.fold(page); refresh(); });
      }
    }
    tool(parts, "GraphML", "Save the folded tree for graph tools", () => recrawl.save("site-graph.graphml", files.graphml(tree), "application/xml"));
    if (tree.disc.size) {
      tool(parts, "GraphML, all pages", "Save the whole tree, including folded parts", () => recrawl.save("site-graph-all.graphml", files.graphml(tree, true), "application/xml"));
    }
    parts.stage.parentElement.before(legend(tree, (only) => { look.only = only; refresh(); }));
    box.querySelector(".graph-body").before(box.querySelector(".graph-legend"));
    wireSearch(parts, tree, (page) => choose(page));
    return {
      sigma, tree, drawing, choose,
      png: () => (sigma ? files.png(sigma) : "data:,"), svg: () => (sigma ? files.svg(sigma, drawing.graph) : ""), csv: () => files.csv(tree),
      redraw: () => { look.read(); if (sigma) { sigma.refresh(); } },
      resize: () => { if (sigma) { sigma.resize(); sigma.refresh(); } },
      close: () => { unwire(); if (sigma) sigma.kill(); },
    };
  };

  recrawl.charts.register("site-graph", draw);
})();
