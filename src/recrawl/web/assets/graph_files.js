// The graph as files: what is seen as SVG and PNG, all pages as CSV, the folded tree or the whole one as GraphML.
(() => {
  "use strict";
  const { recrawl } = window;
  const { CLASSES } = recrawl.site;
  const NOT_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
  const xml = (text) => recrawl.escape(String(text).replace(NOT_XML, "\ufffd"));

  const path = (shape, x, y, r) => {
    const at = (...points) => `M${points.map(([a, b]) => `${(x + a * r).toFixed(2)} ${(y + b * r).toFixed(2)}`).join("L")}Z`;
    switch (shape) {
      case 2: return at([0, -1], [0.87, 0.5], [-0.87, 0.5]);
      case 3: return at([-0.72, -0.72], [0.72, -0.72], [0.72, 0.72], [-0.72, 0.72]);
      case 4: return at([0, -0.34], [0.38, -0.72], [0.72, -0.38], [0.34, 0], [0.72, 0.38], [0.38, 0.72], [0, 0.34], [-0.38, 0.72], [-0.72, 0.38], [-0.34, 0], [-0.72, -0.38], [-0.38, -0.72]);
      case 5: return at([0, -1], [1, 0], [0, 1], [-1, 0]);
      default: return null;
    }
  };

  const LABEL = { size: 12, font: "system-ui, sans-serif" };
  // The label of a mark as the graph shows it: beside a page, inside a disc that is wide enough.
  const label = (pen, data, at, r) => {
    pen.font = `${LABEL.size}px ${LABEL.font}`;
    const { width } = pen.measureText(data.label);
    const isDisc = data.shape > 5;
    if (isDisc && width >= 1.9 * r) return "";
    const x = isDisc ? at.x - width / 2 : at.x + r + 4;
    return `<text x="${x.toFixed(1)}" y="${(at.y + LABEL.size / 3).toFixed(1)}" font-size="${LABEL.size}" font-family="${LABEL.font}" `
      + `fill="${recrawl.colour("ink")}" stroke="${recrawl.colour("surface")}" stroke-width="3" paint-order="stroke">${xml(data.label)}</text>`;
  };

  // What sigma shows now, as SVG. Marks outside the window are left out.
  const svg = (sigma, graph) => {
    const { width, height } = sigma.getDimensions();
    const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
      `<rect width="100%" height="100%" fill="${recrawl.colour("surface")}"/>`];
    const place = (node) => sigma.framedGraphToViewport(sigma.getNodeDisplayData(node));
    const inside = ({ x, y }, r) => x > -r && y > -r && x < width + r && y < height + r;
    const lines = [];
    graph.forEachEdge((_edge, _attributes, source, target) => {
      const [from, to] = [place(source), place(target)];
      if (inside(from, 0) || inside(to, 0)) lines.push(`M${from.x.toFixed(1)} ${from.y.toFixed(1)}L${to.x.toFixed(1)} ${to.y.toFixed(1)}`);
    });
    out.push(`<path d="${lines.join("")}" fill="none" stroke="${recrawl.colour("line")}" stroke-width="0.8"/>`);
    const labelled = sigma.getNodeDisplayedLabels();
    const pen = document.createElement("canvas").getContext("2d");
    const labels = [];
    graph.forEachNode((node) => {
      const data = sigma.getNodeDisplayData(node);
      const r = Math.max(sigma.scaleSize(data.size), 1.1);
      const at = place(node);
      if (!inside(at, r)) return;
      if (labelled.has(node) && data.label) labels.push(label(pen, data, at, r));
      const drawn = path(data.shape, at.x, at.y, r);
      const faint = data.shape > 5 ? ` fill-opacity="0.35" stroke="${data.color}"` : "";
      const hollow = data.shape === 0 ? ` fill="none" stroke="${data.color}" stroke-width="${(r * 0.4).toFixed(2)}"` : ` fill="${data.color}"`;
      out.push(drawn ? `<path d="${drawn}" fill="${data.color}"/>`
        : `<circle cx="${at.x.toFixed(2)}" cy="${at.y.toFixed(2)}" r="${(data.shape === 0 ? r * 0.8 : r).toFixed(2)}"${hollow}${faint}/>`);
    });
    return `${[...out, ...labels].join("\n")}\n</svg>\n`;
  };

  const png = (sigma) => {
    sigma.refresh();  // the buffers of WebGL are only there right after drawing
    const { width, height } = sigma.getDimensions();
    const scale = window.devicePixelRatio || 1;
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [width * scale, height * scale];
    const context = copy.getContext("2d");
    context.fillStyle = recrawl.colour("surface");
    context.fillRect(0, 0, copy.width, copy.height);
    const layers = sigma.getCanvases();
    for (const name of ["edges", "nodes", "labels"]) if (layers[name]) context.drawImage(layers[name], 0, 0, copy.width, copy.height);
    return copy.toDataURL("image/png");
  };

  const csv = (tree) => {
    const { pages } = tree;
    const iso = (seconds) => (seconds === null ? null : new Date(seconds * 1000).toISOString());
    return {
      url: pages.urls, found_on: tree.parent.map((up) => (up < 0 ? null : pages.urls[up])), class: pages.change.map((change) => CLASSES[change].name),
      changes_per_day: pages.rate.map((rate) => (rate === null ? null : rate * 86400)), last_change: pages.changed.map(iso), last_found: pages.seen.map(iso),
      times_found: pages.captures, type: pages.mime.map((one) => pages.mimes[one]), folded: tree.drawn.map((drawn) => !drawn),
    };
  };

  // The folded tree or the whole one, with places and sizes, for graph tools; drawn for yEd as formats/graphml.py does.
  const FILLS = { unseen: "#808080", unchanged: "#00FF00", content: "#FFFF00", links: "#FF0000", missing: "#000000", new: "#0000FF" };
  const drawing = (text, kind, pages, x, y) => {
    const size = (10 * Math.sqrt(pages)).toFixed(3);
    const shown = pages > 1 ? `<y:NodeLabel>${xml(text)}</y:NodeLabel>` : "";
    return `<data key="shape"><y:ShapeNode><y:Geometry width="${size}" height="${size}" x="${x}" y="${y}"/>`
      + `<y:Fill color="${FILLS[kind] || FILLS.unseen}" transparent="false"/>${shown}<y:Shape type="ellipse"/></y:ShapeNode></data>`;
  };
  const graphml = (tree, whole = false) => {
    const keys = [["label", "string"], ["class", "string"], ["pages", "long"], ["folded", "boolean"], ["x", "double"], ["y", "double"]];
    const out = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">',
      ...keys.map(([name, type]) => `  <key id="${name}" for="node" attr.name="${name}" attr.type="${type}"/>`), '  <key id="shape" for="node" yfiles.type="nodegraphics"/>', '  <graph edgedefault="directed">'];
    const node = (id, values) => out.push(`    <node id="${id}">${keys.map(([name], place) => `<data key="${name}">${xml(values[place])}</data>`).join("")}${drawing(values[0], values[1], values[2], values[4], values[5])}</node>`);
    const edges = [];
    tree.drawn.forEach((drawn, page) => {
      if (!drawn && !whole) return;
      node(`n${page}`, [tree.pages.urls[page], CLASSES[tree.pages.change[page]].name, 1, false, tree.x[page], tree.y[page]]);
      if (tree.parent[page] >= 0) edges.push([`n${tree.parent[page]}`, `n${page}`]);
    });
    for (const { page, pages, x, y } of whole ? [] : tree.disc.values()) {
      node(`f${page}`, [`${pages} unchanged`, "unchanged", pages, true, x, y]);
      edges.push([`n${page}`, `f${page}`]);
    }
    for (const [from, to] of edges) out.push(`    <edge source="${from}" target="${to}"/>`);
    return `${out.join("\n")}\n  </graph>\n</graphml>\n`;
  };

  recrawl.site.files = { svg, png, csv, graphml };
})();
