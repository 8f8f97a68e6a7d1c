// Places of pages in the site graph. d3-hierarchy packs circles; this says which circles there are.
//
// A page lies in a circle with everything below it: in the middle of a flower of the pages without others below, beside
// the disc of what is folded and the circles of the other pages below. The same tree always has the same places, no two
// pages overlap, and folded pages have their places inside their disc, so that nothing moves when it is unfolded.
(() => {
  "use strict";
  const { packSiblings, packEnclose } = window.d3;
  const ROOT = -1;
  const GAP = 0.4;
  const RIM = 0.5;
  // Seeds of a sunflower at this times the root of their number from the middle are about 1 apart.
  const SPREAD = 0.62;
  const GOLDEN = Math.PI * (3 - Math.sqrt(5));
  // A part of the tree this many times as wide as a flower of its pages is drawn as that flower.
  const LOOSE = 8;
  // Height of the strips in which the pages of a flower follow each other.
  const STRIP = 2;

  const radiusOf = (pages) => SPREAD * Math.sqrt(pages) + RIM;

  // Places around 0. Neighbours by address are neighbours: they follow each other from strip to strip.
  const sunflower = (count, first) => {
    const seeds = Array.from({ length: count }, (_one, place) => {
      const away = SPREAD * Math.sqrt(first + place + (first ? 1 : 0.5));
      const turn = (first + place) * GOLDEN;
      return { x: away * Math.cos(turn), y: away * Math.sin(turn) };
    });
    if (count === 1 && !first) return [{ x: 0, y: 0 }];
    const strip = ({ y }) => Math.floor(y / STRIP);
    return seeds.sort((a, b) => strip(a) - strip(b) || (strip(a) % 2 ? b.x - a.x : a.x - b.x));
  };

  // Give circles places around 0, a gap apart, and return the radius of the circle around all.
  const pack = (circles) => {
    const wide = circles.map((of) => ({ of, r: of.r + GAP })).sort((a, b) => b.r - a.r || a.of.page - b.of.page);
    packSiblings(wide);
    const around = packEnclose(wide);
    for (const { of, x, y } of wide) { of.x = x - around.x; of.y = y - around.y; }
    return around.r;
  };

  // Pages after those above them, however deep the tree is.
  const downwards = (roots, children) => {
    const order = [...roots];
    for (let place = 0; place < order.length; place += 1) for (const page of children[order[place]] || []) order.push(page);
    return order;
  };

  // What is in a circle, circles within it taken apart: all pages as one flower, and the discs.
  const flattened = (page, circle) => {
    const [pages, discs, waiting] = [[], [], [circle]];
    while (waiting.length) {
      for (const part of waiting.pop().parts) {
        if (part.circle) waiting.push(part.circle);
        else if (part.disc) discs.push(part);
        else for (const one of part.pages) pages.push(one);
      }
    }
    pages.sort((a, b) => (b === page) - (a === page) || a - b);
    return [{ page, pages, r: radiusOf(pages.length) }, ...discs];
  };

  const wrap = (page, parts) => {
    const size = parts.reduce((sum, part) => sum + (part.circle ? part.circle.size : part.pages.length), 0);
    const circle = { parts, size, r: pack(parts) };
    if (parts.length > 1 && circle.r > LOOSE * radiusOf(size)) {
      circle.parts = flattened(page, circle);
      circle.r = pack(circle.parts);
    }
    return circle;
  };

  // The places of a tree: x and y by page, disc by the page that holds it, and the radius of the circle around all.
  const layout = ({ drawn, children, roots, foldedInto }) => {
    const [x, y] = [new Array(drawn.length).fill(0), new Array(drawn.length).fill(0)];
    const [disc, circles, folded, below] = [new Map(), new Map(), new Map(), new Map()];
    const order = downwards(roots, children).filter((page) => drawn[page]);
    for (const page of order) {
      const [shown, hidden] = [[], []];
      for (const one of children[page] || []) (drawn[one] ? shown : hidden).push(one);
      below.set(page, shown);
      if (hidden.length) folded.set(page, foldedInto(page));
    }
    const tops = new Set(roots);
    const isSeed = (page) => !tops.has(page) && !folded.has(page) && !below.get(page).length;
    const nested = (page) => ({ page, circle: circles.get(page), r: circles.get(page).r });
    for (const page of order.slice().reverse()) {
      const flower = [page, ...below.get(page).filter(isSeed)];
      const parts = [{ page, pages: flower, r: radiusOf(flower.length) }];
      const hidden = folded.get(page);
      if (hidden) parts.push({ page, pages: hidden, r: radiusOf(hidden.length), disc: true });
      if (!isSeed(page)) circles.set(page, wrap(page, [...parts, ...below.get(page).filter((one) => !isSeed(one)).map(nested)]));
    }
    if (!roots.length) return { x, y, disc, radius: 0 };
    const whole = wrap(ROOT, roots.map(nested));
    const waiting = [{ circle: whole, left: 0, low: 0 }];
    while (waiting.length) {
      const { circle, left, low } = waiting.pop();
      for (const part of circle.parts) {
        const [a, b] = [left + part.x, low + part.y];
        if (part.circle) { waiting.push({ circle: part.circle, left: a, low: b }); continue; }
        if (part.disc) disc.set(part.page, { x: a, y: b, radius: part.r });
        const places = part.disc ? sunflower(part.pages.length, 0) : [{ x: 0, y: 0 }, ...sunflower(part.pages.length - 1, 1)];
        part.pages.forEach((page, row) => { x[page] = a + places[row].x; y[page] = b + places[row].y; });
      }
    }
    return { x, y, disc, radius: whole.r };
  };

  window.recrawl.site.layout = layout;
})();
