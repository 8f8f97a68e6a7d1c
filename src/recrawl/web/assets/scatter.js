// Pages as dots by directory, type and address: flat by ECharts, or as the cube of the thesis (scatter3d.js).
(() => {
  "use strict";
  const { recrawl } = window;
  const { CLASSES, element, factsOf } = recrawl.site;
  const SYMBOLS = ["emptyCircle", "circle", "triangle", "rect", "path://M0 1L1 0L3 2L5 0L6 1L4 3L6 5L5 6L3 4L1 6L0 5L2 3Z", "diamond"];
  // What is drawn first lies below: what changed lies above what did not.
  const ORDER = [1, 0, 2, 3, 5, 4];
  // Long names lose their middle: hosts differ in front, directories behind.
  const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.floor(most / 3))}…${text.slice(1 + Math.floor(most / 3) - most)}` : text);
  const sizeOf = (stack) => (stack === 1 ? 11 : stack === 2 ? 8 : stack === 3 ? 6 : stack <= 6 ? 4 : stack <= 12 ? 2.5 : 1.5);

  // Pages of one class and size are one series, which ECharts draws at once however many they are.
  const groupsOf = (data) => {
    const groups = new Map();
    data.pages.change.forEach((change, page) => {
      const size = sizeOf(data.stack[page]);
      const key = `${change} ${size}`;
      if (!groups.has(key)) groups.set(key, { change, size, pages: [] });
      groups.get(key).pages.push(page);
    });
    return [...groups.values()].sort((one, other) => ORDER.indexOf(one.change) - ORDER.indexOf(other.change));
  };

  const tip = (data, page) => {
    const facts = factsOf(data.pages, page).slice(0, 3).map(([name, value]) => `${recrawl.escape(name)}: <b>${recrawl.escape(value)}</b>`);
    return `<div class="scatter-tip"><b>${recrawl.escape(data.pages.urls[page])}</b><br>${facts.join("<br>")}</div>`;
  };

  const option = (data) => {
    const [ink, line] = [recrawl.colour("muted"), recrawl.colour("line")];
    const groups = groupsOf(data);
    const middles = data.edges.slice(0, -1).map((edge, place) => (edge + data.edges[place + 1]) / 2);
    const rows = data.directories.map((_name, place) => place + 0.5);
    const names = CLASSES.map((one) => one.words).filter((_words, change) => groups.some((one) => one.change === change));
    const wide = data.width > 640;
    const label = (values, texts, most) => ({ color: ink, fontSize: 11, customValues: values, hideOverlap: !wide, formatter: (value) => cut(texts[values.indexOf(value)] || "", most) });
    const axis = (values, texts, most) => ({ type: "value", axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: false }, axisLabel: label(values, texts, most) });
    return {
      animation: false, backgroundColor: "transparent", aria: { enabled: true },
      grid: { left: wide ? 190 : 96, right: 12, top: 66, bottom: wide ? 12 : 48 },
      legend: { top: 4, left: 0, right: 130, type: "scroll", itemWidth: 14, itemHeight: 11, selectedMode: true, data: names, textStyle: { color: recrawl.colour("ink") }, inactiveColor: line },
      tooltip: { trigger: "item", confine: true, backgroundColor: recrawl.colour("surface"), borderColor: line, textStyle: { color: recrawl.colour("ink"), fontSize: 12 },
        extraCssText: "max-width:32rem;white-space:normal;overflow-wrap:anywhere", formatter: (params) => tip(data, groups[params.seriesIndex].pages[params.dataIndex]) },
      xAxis: { ...axis(middles, data.types, wide ? 22 : 9), position: "top", min: 0, max: data.edges[data.edges.length - 1] },
      yAxis: { ...axis(rows, data.directories, wide ? 28 : 14), inverse: true, min: 0, max: data.directories.length },
      dataZoom: [0, 1].map((which) => ({ type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, moveOnMouseWheel: false, [which ? "yAxisIndex" : "xAxisIndex"]: 0 })),
      series: groups.map((group, place) => ({
        type: "scatter", name: CLASSES[group.change].words, symbol: SYMBOLS[group.change], symbolSize: (group.size + (group.change === 1 ? 0 : 1)) * (wide ? 1 : 0.5),
        itemStyle: { color: recrawl.colour(CLASSES[group.change].name), opacity: 0.9 }, large: group.pages.length > 2000, z: 2 + place,
        data: group.pages.map((page) => [data.x[page], data.y[page]]),
        markLine: place ? undefined : { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: line, type: "solid", width: 1 }, animation: false,
          data: [...data.edges.map((xAxis) => ({ xAxis })), ...data.directories.map((_name, yAxis) => ({ yAxis })), { yAxis: data.directories.length }] },
      })),
    };
  };

  const columns = ({ pages, directory, directories, type, types }) => ({
    url: pages.urls, directory: directory.map((one) => directories[one]), type: type.map((one) => types[one]), class: pages.change.map((change) => CLASSES[change].name),
  });

  const draw = async (box, given) => {
    const source = given.pagesOf ? (await recrawl.read(`data-${given.pagesOf}`)).data.pages : given.pages;
    const data = { ...given, pages: recrawl.site.readPages(source), width: box.clientWidth };
    const flat = element("div", { class: "scatter-flat" });
    const cube = element("div", { class: "scatter-cube", hidden: true });
    const button = element("button", { type: "button", class: "button scatter-switch", "aria-pressed": "false" }, "Show in 3-D");
    box.classList.add("scatter-box");
    box.append(flat, cube, button);
    const wide = recrawl.charts.echart(option, columns)(flat, data);
    let deep = null;
    const shown = () => (cube.hidden ? wide : deep);
    button.addEventListener("click", () => {
      const on = cube.hidden;
      [flat.hidden, cube.hidden] = [on, !on];
      box.classList.toggle("deep", on);
      button.setAttribute("aria-pressed", String(on));
      button.textContent = on ? "Show flat" : "Show in 3-D";
      if (on && !deep) deep = recrawl.site.cube(cube, data);
      shown().resize();
    });
    return {
      data, flat: wide, png: () => shown().png(), svg: () => shown().svg(), csv: () => columns(data),
      redraw: () => { wide.redraw(); if (deep) deep.redraw(); },
      resize: () => { data.width = box.clientWidth; if (!flat.hidden) { wide.redraw(); wide.resize(); } if (deep) deep.resize(); },
      close: () => { wide.close(); if (deep) deep.close(); },
    };
  };

  recrawl.charts.register("page-scatter", draw);
})();
