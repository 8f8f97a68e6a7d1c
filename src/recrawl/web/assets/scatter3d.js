// The cube of the thesis (figures 8.2 and 8.3): type, directory and address as three axes. Turned by dragging or arrow keys.
(() => {
  "use strict";
  const { recrawl } = window;
  const { CLASSES, element, factsOf } = recrawl.site;

  const VERTEX = `
attribute vec3 a_place;
attribute vec3 a_colour;
attribute float a_shape;
uniform mat4 u_view;
uniform float u_size;
varying vec3 v_colour;
varying float v_shape;
void main() {
  gl_Position = u_view * vec4(a_place, 1.0);
  gl_PointSize = u_size * (a_shape == 1.0 ? 1.0 : 1.4) / gl_Position.w;
  v_colour = a_colour;
  v_shape = a_shape;
}`;
  const FRAGMENT = `
precision mediump float;
varying vec3 v_colour;
varying float v_shape;
bool is(float shape) { return abs(v_shape - shape) < 0.5; }  // a varying is never exact
void main() {
  vec2 p = gl_PointCoord * 2.0 - 1.0;
  float far = length(p);
  float gap = far - 1.0;
  if (is(0.0)) gap = max(far - 1.0, 0.5 - far);
  if (is(2.0)) gap = max(abs(p.x) * 0.866 - p.y * 0.5, p.y) - 0.5;
  if (is(3.0)) gap = max(abs(p.x), abs(p.y)) - 0.8;
  if (is(4.0)) gap = min(abs(p.x + p.y), abs(p.x - p.y)) * 0.707 - 0.26;
  if (is(5.0)) gap = abs(p.x) + abs(p.y) - 1.0;
  if (gap > 0.0) discard;
  gl_FragColor = vec4(v_colour, 1.0);
}`;

  const rgb = (text) => [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16) / 255);
  const spread = (place, count) => (count > 1 ? (place / (count - 1)) * 2 - 1 : 0);

  // Each page in the cube from -1 to 1; its address counts from the first page of its cell to the last.
  const placesOf = (data) => {
    const cells = new Map();
    const place = data.pages.change.map((_change, page) => {
      const cell = `${data.directory[page]} ${data.type[page]}`;
      cells.set(cell, (cells.get(cell) || 0) + 1);
      return cells.get(cell) - 1;
    });
    const out = new Float32Array(3 * place.length);
    place.forEach((number, page) => {
      const count = cells.get(`${data.directory[page]} ${data.type[page]}`);
      out.set([spread(data.type[page], data.types.length), spread(number, Math.max(count, 12)), spread(data.directory[page], data.directories.length)], 3 * page);
    });
    return out;
  };

  // Turned by two angles, seen from a distance: a column-major matrix.
  const viewOf = (turn, tilt, zoom, aspect) => {
    const [c, s, d, e] = [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
    const away = 5.2;
    const f = 2.9 * zoom;
    const rows = [[c, 0, s], [s * e, d, -c * e], [-s * d, e, c * d]];
    const [x, y, z] = rows;
    const [near, far] = [1, 12];
    const [a, b] = [(far + near) / (far - near), (-2 * far * near) / (far - near)];
    // Depth is away - z: larger z is nearer.
    return new Float32Array([0, 1, 2].flatMap((one) => [(f / aspect) * x[one], f * y[one], -a * z[one], -z[one]]).concat([0, 0, a * away + b, away]));
  };
  const project = (view, place, width, height) => {
    const at = [0, 1, 3].map((row) => view[row] * place[0] + view[4 + row] * place[1] + view[8 + row] * place[2] + view[12 + row]);
    return [((at[0] / at[2] + 1) / 2) * width, ((1 - at[1] / at[2]) / 2) * height, at[2]];
  };

  const programOf = (gl) => {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    return program;
  };

  const EDGES = [[[-1, -1, -1], [1, -1, -1]], [[-1, -1, -1], [-1, 1, -1]], [[-1, -1, -1], [-1, -1, 1]], [[1, -1, -1], [1, -1, 1]], [[-1, -1, 1], [1, -1, 1]],
    [[-1, 1, -1], [-1, 1, 1]], [[-1, -1, 1], [-1, 1, 1]], [[1, -1, -1], [1, 1, -1]], [[-1, 1, -1], [1, 1, -1]]];

  recrawl.site.cube = (box, data) => {
    const cloud = element("canvas", { class: "cube-points" });
    const words = element("canvas", { class: "cube-words", tabindex: "0", role: "img", "aria-label": "Pages in a cube of type, directory and URL. Arrow keys turn it, plus and minus zoom." });
    const tip = element("div", { class: "graph-tip", hidden: true });
    const legend = element("p", { class: "cube-legend small" }, ...CLASSES.flatMap((one, change) => (data.pages.change.includes(change) ? [recrawl.site.sign(change), `${one.words} `] : [])));
    box.append(cloud, words, tip, legend);
    const gl = cloud.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
    if (!gl) {
      box.replaceChildren(element("p", { class: "empty" }, "This browser cannot draw with WebGL."));
      const nothing = () => null;
      return { png: () => "data:,", svg: () => "", redraw: nothing, resize: nothing, close: nothing };
    }
    const places = placesOf(data);
    const state = { turn: 0.6, tilt: 0.45, zoom: 1, view: null, waiting: false };
    const program = programOf(gl);
    const count = places.length / 3;
    const fill = (name, values, size) => {
      const buffer = gl.createBuffer();
      const slot = gl.getAttribLocation(program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(slot);
      gl.vertexAttribPointer(slot, size, gl.FLOAT, false, 0, 0);
      return buffer;
    };
    fill("a_place", places, 3);
    fill("a_shape", Float32Array.from(data.pages.change), 1);
    let colours = null;
    const paint = () => {
      const inks = CLASSES.map((one) => rgb(recrawl.colour(one.name)));
      const values = new Float32Array(3 * count);
      data.pages.change.forEach((change, page) => values.set(inks[change], 3 * page));
      if (colours) gl.deleteBuffer(colours);
      colours = fill("a_colour", values, 3);
    };
    paint();

    // Lines and words of the axes: of types and directories as many as there is room for.
    const axes = (line, text) => {
      const [width, height] = [box.clientWidth, box.clientHeight];
      const at = (place) => project(state.view, place, width, height);
      for (const [from, to] of EDGES) line(at(from), at(to));
      const written = [];
      const write = (place, name) => {
        const [x, y] = at(place);
        if (written.some(([a, b]) => Math.abs(x - a) < 90 && Math.abs(y - b) < 12)) return;
        written.push([x, y]);
        text([x + 4, y + 4], name);
      };
      data.types.forEach((name, place) => write([spread(place, data.types.length), -1.04, 1.1], name));
      data.directories.forEach((name, place) => write([1.1, -1.04, spread(place, data.directories.length)], name));
      write([-1.05, 1.08, -1.05], "address");
    };
    const draw = () => {
      state.waiting = false;
      const [width, height, scale] = [box.clientWidth, box.clientHeight, window.devicePixelRatio || 1];
      if (!width) return;
      for (const canvas of [cloud, words]) if (canvas.width !== width * scale || canvas.height !== height * scale) [canvas.width, canvas.height] = [width * scale, height * scale];
      state.view = viewOf(state.turn, state.tilt, state.zoom, width / height);
      gl.viewport(0, 0, cloud.width, cloud.height);
      gl.clearColor(0, 0, 0, 0);
      gl.enable(gl.DEPTH_TEST);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      gl.useProgram(program);
      gl.uniformMatrix4fv(gl.getUniformLocation(program, "u_view"), false, state.view);
      gl.uniform1f(gl.getUniformLocation(program, "u_size"), scale * state.zoom * (count > 5000 ? 22 : 40));
      gl.drawArrays(gl.POINTS, 0, count);
      const context = words.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      context.strokeStyle = recrawl.colour("line");
      context.fillStyle = recrawl.colour("muted");
      context.font = "11px system-ui, sans-serif";
      axes(([x, y], [a, b]) => { context.beginPath(); context.moveTo(x, y); context.lineTo(a, b); context.stroke(); }, ([x, y], name) => context.fillText(name, x, y));
    };
    const soon = () => { if (!state.waiting) { state.waiting = true; requestAnimationFrame(draw); } };
    const turn = (across, down) => { state.turn += across; state.tilt = Math.max(-1.5, Math.min(1.5, state.tilt + down)); soon(); };
    const zoom = (by) => { state.zoom = Math.max(0.4, Math.min(12, state.zoom * by)); soon(); };

    const nearest = (x, y) => {
      let [best, least] = [-1, 12 * 12];
      for (let page = 0; page < count; page += 1) {
        const [a, b, depth] = project(state.view, places.subarray(3 * page, 3 * page + 3), box.clientWidth, box.clientHeight);
        const far = (a - x) ** 2 + (b - y) ** 2 + depth * 0.01;
        if (far < least) [best, least] = [page, far];
      }
      return best;
    };
    let held = null;
    words.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; words.setPointerCapture(event.pointerId); tip.hidden = true; });
    words.addEventListener("pointerup", () => { held = null; });
    words.addEventListener("pointerleave", () => { tip.hidden = true; });
    words.addEventListener("pointermove", (event) => {
      if (held) { turn((event.clientX - held[0]) / 150, (event.clientY - held[1]) / 150); held = [event.clientX, event.clientY]; return; }
      const area = words.getBoundingClientRect();
      const [x, y] = [event.clientX - area.left, event.clientY - area.top];
      const page = nearest(x, y);
      tip.hidden = page < 0;
      if (page < 0) return;
      tip.replaceChildren(element("p", { class: "mono url" }, data.pages.urls[page]), ...factsOf(data.pages, page).slice(0, 3).map(([name, value]) => element("p", {}, `${name}: ${value}`)));
      tip.style.left = `${Math.min(x + 14, area.width - tip.offsetWidth - 4)}px`;
      tip.style.top = `${Math.min(y + 16, area.height - tip.offsetHeight - 4)}px`;
    });
    words.addEventListener("wheel", (event) => { if (!event.ctrlKey && !held) return; event.preventDefault(); zoom(Math.exp(-event.deltaY / 400)); }, { passive: false });
    words.addEventListener("keydown", (event) => {
      const act = { ArrowLeft: () => turn(-0.1, 0), ArrowRight: () => turn(0.1, 0), ArrowUp: () => turn(0, -0.1), ArrowDown: () => turn(0, 0.1), "+": () => zoom(1.15), "-": () => zoom(1 / 1.15) }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    draw();

    const png = () => {
      draw();
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [cloud.width, cloud.height];
      const context = copy.getContext("2d");
      context.fillStyle = recrawl.colour("surface");
      context.fillRect(0, 0, copy.width, copy.height);
      for (const layer of [cloud, words]) context.drawImage(layer, 0, 0);
      return copy.toDataURL("image/png");
    };
    const svg = () => {
      const [width, height] = [box.clientWidth, box.clientHeight];
      const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="${recrawl.colour("surface")}"/>`];
      const points = Array.from({ length: count }, (_one, page) => [page, ...project(state.view, places.subarray(3 * page, 3 * page + 3), width, height)]);
      axes(([x, y], [a, b]) => out.push(`<line x1="${x.toFixed(1)}" y1="${y.toFixed(1)}" x2="${a.toFixed(1)}" y2="${b.toFixed(1)}" stroke="${recrawl.colour("line")}"/>`),
        ([x, y], name) => out.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="11" font-family="sans-serif" fill="${recrawl.colour("muted")}">${recrawl.escape(name)}</text>`));
      points.sort((one, other) => other[3] - one[3]);
      for (const [page, x, y, depth] of points) out.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${(10 / depth).toFixed(1)}" fill="${recrawl.colour(CLASSES[data.pages.change[page]].name)}"/>`);
      return `${out.join("\n")}</svg>\n`;
    };
    return { png, svg, redraw: () => { paint(); draw(); }, resize: draw, close: () => gl.getExtension("WEBGL_lose_context")?.loseContext(), state };
  };
})();
