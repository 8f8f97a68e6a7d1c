// Figures: plain columns become ECharts plots. Each can be saved as PNG and SVG, and its data as CSV.
// Other scripts add kinds with recrawl.charts.register(kind, draw); draw(box, data, figure) returns a handle:
// {png(): data URL, svg(): text or null, csv(): columns by name, redraw(), resize()}, each of which may be a promise.
(() => {
  "use strict";
  const { recrawl } = window;
  const kinds = new Map();
  const drawn = new Map();
  const ready = new Map();

  const colour = (series, place) => recrawl.colour(series.colour || `series-${(place % 8) + 1}`);
  const KIND_OF_SCALE = { time: "time", share: "share", seconds: "seconds", count: "count" };
  const format = (axis, value) => recrawl.format(KIND_OF_SCALE[axis.scale] || "number", value);
  const isNames = (axis) => axis.scale === "names";
  const isLog = (axis) => axis.scale === "log" || Boolean(axis.log);
  const named = (axis, value) => (isNames(axis) ? axis.names[value] : format(axis, value));

  // Steps of a duration that people count in; of other axes ECharts knows better.
  const STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 30 * 86400,
    91 * 86400, 182.625 * 86400, 365.25 * 86400, 730.5 * 86400, 3652.5 * 86400];
  const evenly = (axis) => {
    if (axis.scale !== "seconds" || isLog(axis) || !(axis.top > 0)) return {};
    const step = STEPS.find((one) => axis.top / one <= 6) || axis.top / 5;
    return { min: 0, interval: step, max: Math.ceil(axis.top / step) * step };
  };
  // Marks of a logarithmic axis of durations: round numbers of the units that people count in, not powers of ten of seconds.
  const MARKS = [1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 182.625 * 86400, 365.25 * 86400, 3652.5 * 86400,
    36525 * 86400];
  const durationMarks = (axis) => {
    if (axis.scale !== "seconds" || !isLog(axis) || !(axis.top > 0) || !(axis.bottom > 0)) return [];
    const [low, high] = [axis.bottom / 1.5, axis.top * 1.5];
    return MARKS.filter((one) => one >= low && one <= high);
  };
  // A day needs its month: the first of a month, which would tell it, may lie between two marks.
  const DATES = { year: "{yyyy}", month: "{MMM} {yyyy}", day: "{d} {MMM}", hour: "{HH}:{mm}", minute: "{HH}:{mm}" };
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const axisOption = (axis, across) => {
    const ink = recrawl.colour("muted");
    const line = recrawl.colour("line");
    const option = {
      name: axis.title || "", nameLocation: "middle", nameTextStyle: { color: ink, fontSize: 12 }, nameGap: across ? 26 : 34,
      type: isNames(axis) ? "category" : isLog(axis) ? "log" : axis.scale === "time" ? "time" : "value",
      axisLine: { lineStyle: { color: line } }, axisTick: { lineStyle: { color: line } },
      splitLine: { show: !across && !isNames(axis), lineStyle: { color: line } },
      axisLabel: { color: ink, fontSize: 11, hideOverlap: true },
      min: axis.min ?? null, max: axis.max ?? null, scale: axis.scale === "linear" && axis.min === undefined,
      ...evenly(axis),
    };
    const marks = durationMarks(axis);
    if (marks.length > 1) {
      Object.assign(option, { min: axis.bottom / 1.5, max: axis.top * 1.5 });
      option.axisLabel.customValues = marks;
      option.axisTick.customValues = marks;
    }
    if (isNames(axis)) {
      option.data = axis.names.map((name) => String(name));
      option.axisLabel.formatter = (name) => cut(name.replace(/^https?:\/\//, ""), across ? 16 : 38);
      if (!across) { option.inverse = true; option.axisLabel.interval = 0; option.nameLocation = "start"; }
    } else option.axisLabel.formatter = axis.scale === "time" ? DATES : (value) => format(axis, value);
    if (axis.scale === "time") { option.min = axis.min && axis.min * 1000; option.max = axis.max && axis.max * 1000; }
    return option;
  };

  const at = (axis, value) => (axis.scale === "time" && value !== null ? value * 1000 : value);
  // A logarithm has no zero: such points are not drawn, but they are in the CSV.
  const points = (data, series) => {
    const pick = (axis, value) => (isLog(axis) && value !== null && value <= 0 ? null : at(axis, value));
    return series.x.map((x, row) => [pick(data.x, x), pick(yAxis(data, series), series.y[row]), row]);
  };
  const yAxis = (data, series) => (series.axis === 2 ? data.y2 : data.y);

  const boxes = (data, series, ink, place) => ({
    type: "custom", clip: true, name: series.name, itemStyle: { color: ink }, dimensions: ["from", "to", "y", "row"],
    encode: { x: [0, 1], y: 2 },
    data: series.y.map((y, row) => [at(data.x, series.edges[row]), at(data.x, series.edges[row + 1]), y, row]),
    renderItem: (params, api) => {
      const floor = isLog(data.y) ? (data.y.min || 1e-9) : 0;
      const [left, top] = api.coord([api.value(0), api.value(2)]);
      const [right, bottom] = api.coord([api.value(1), floor]);
      const area = params.coordSys;
      const low = Math.min(bottom, area.y + area.height);
      if (low - top <= 0) return null;
      const wide = Math.max(right - left - 1, 1);
      return { type: "rect", shape: { x: left, y: top, width: wide, height: low - top },
        style: { fill: ink, opacity: place > 0 || series.faint ? 0.55 : 0.8 } };
    },
  });

  const band = (data, series, ink) => ({
    type: "custom", clip: true, name: series.name, itemStyle: { color: ink }, silent: true, z: 1,
    encode: { x: 0, y: [1, 2] },
    data: [[at(data.x, series.x[0]), Math.min(...series.low), Math.max(...series.high)]],
    renderItem: (_params, api) => {
      const upper = series.x.map((x, row) => api.coord([at(data.x, x), series.high[row]]));
      const lower = series.x.map((x, row) => api.coord([at(data.x, x), series.low[row]])).reverse();
      return { type: "polygon", shape: { points: [...upper, ...lower] }, style: { fill: ink, opacity: 0.18 } };
    },
  });

  const whiskers = (data, series, ink) => ({
    type: "custom", clip: true, name: series.name, itemStyle: { color: ink }, encode: { x: 0, y: [1, 2, 3] },
    data: series.x.map((x, row) => [at(data.x, x), series.y[row], series.low[row], series.high[row], row]),
    renderItem: (_params, api) => {
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const low = api.coord([api.value(0), api.value(2)])[1];
      const high = api.coord([api.value(0), api.value(3)])[1];
      return { type: "group", children: [
        { type: "line", shape: { x1: x, y1: low, x2: x, y2: high }, style: { stroke: ink, opacity: 0.45, lineWidth: 1.5 } },
        { type: "circle", shape: { cx: x, cy: y, r: 3 }, style: { fill: ink } }] };
    },
  });

  const seriesOption = (data, series, place) => {
    const ink = colour(series, place);
    const common = { name: series.name, itemStyle: { color: ink }, yAxisIndex: series.axis === 2 ? 1 : 0, z: 2 };
    switch (series.draw) {
      case "histogram": return boxes(data, series, ink, place);
      case "band": return band(data, series, ink);
      case "whiskers": return whiskers(data, series, ink);
      case "bars": {
        const lying = isNames(data.y);
        const values = lying ? series.x : series.y;
        return { ...common, type: "bar", stack: series.stack, barMaxWidth: 28, cursor: "default",
          data: isNames(data.x) || lying ? values : points(data, series) };
      }
      case "points": return { ...common, type: "scatter", symbolSize: series.size || 6, data: points(data, series),
        large: series.x.length > 3000, itemStyle: { color: ink, opacity: series.x.length > 300 ? 0.5 : 0.75 } };
      default: {
        const line = { ...common, type: "line", showSymbol: series.x.length === 1, sampling: series.x.length > 2000 ? "lttb" : undefined,
          lineStyle: { color: ink, width: 2, type: series.dashed ? "dashed" : "solid" },
          data: isNames(data.x) ? series.y : points(data, series) };
        if (series.draw === "step") line.step = "end";
        if (series.draw === "area") { line.areaStyle = { color: ink, opacity: 0.75 }; line.lineStyle.width = 0.5; line.stack = series.stack; line.symbol = "none"; }
        return line;
      }
    }
  };

  const row = (params) => (Array.isArray(params.value) ? params.value[params.value.length - 1] : params.dataIndex);
  const tooltip = (data) => (params) => {
    const { escape } = recrawl;
    const all = Array.isArray(params) ? params : [params];
    const first = data.series[all[0].seriesIndex];
    const place = row(all[0]);
    const lying = isNames(data.y);
    let head;
    if (first.edges) head = `${format(data.x, first.edges[place])} – ${format(data.x, first.edges[place + 1])}`;
    else if (lying) head = data.y.names[all[0].dataIndex];
    else head = named(data.x, isNames(data.x) ? all[0].dataIndex : first.x[place]);
    const lines = all.map((one) => {
      const series = data.series[one.seriesIndex];
      if (!series || series.draw === "band") return "";
      const at_ = row(one);
      const axis = lying ? data.x : yAxis(data, series);
      const value = format(axis, (lying ? series.x : series.y)[at_]);
      const span = series.low ? ` (${format(axis, series.low[at_])} – ${format(axis, series.high[at_])})` : "";
      const label = series.label ? `${escape(series.label[at_])}<br>` : "";
      return `${label}${one.marker}${escape(series.name)}: <b>${escape(value)}</b>${escape(span)}`;
    });
    return `${escape(head)}<br>${lines.filter(Boolean).join("<br>")}`;
  };

  const known = (values) => values.filter((value) => Number.isFinite(value));
  const highest = (data, second) => Math.max(0, ...known(data.series.filter((one) => (one.axis === 2) === second)
    .flatMap((one) => one.high || one.y || [])));
  const lowest = (data) => Math.min(Infinity, ...known(data.series.flatMap((one) => one.low || one.y || [])).filter((value) => value > 0));
  const farthest = (data) => Math.max(0, ...known(data.series.flatMap((one) => one.x || [])));
  const chartOption = (given) => {
    const data = { ...given, x: { ...given.x, top: farthest(given) }, y: { ...given.y, top: highest(given, false), bottom: lowest(given) }, y2: given.y2 && { ...given.y2, top: highest(given, true) } };
    const lying = isNames(data.y);
    const byAxis = !lying && data.series.every((one) => ["line", "step", "area", "bars"].includes(one.draw))
      && (isNames(data.x) || data.series.every((one) => one.x.length === data.series[0].x.length));
    const legend = data.series.length > 1;
    const wheel = { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" };
    return {
      // Times are UTC everywhere, in words, tables and files; so they are here, wherever the reader is.
      useUTC: true, animation: false, backgroundColor: "transparent", textStyle: { fontFamily: "system-ui, sans-serif" },
      aria: { enabled: true },
      legend: { show: legend, top: 0, left: 0, type: "scroll", itemWidth: 14, itemHeight: 9, textStyle: { color: recrawl.colour("ink"), fontSize: 12 },
        data: data.series.map((one) => one.name), pageTextStyle: { color: recrawl.colour("muted") } },
      grid: { left: 4, right: 12, top: legend ? 36 : 12, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "all" },
      tooltip: { trigger: byAxis || (lying && data.series.length > 1) ? "axis" : "item", confine: true, formatter: tooltip(data), axisPointer: { type: lying ? "shadow" : "line" },
        backgroundColor: recrawl.colour("surface"), borderColor: recrawl.colour("line"), textStyle: { color: recrawl.colour("ink"), fontSize: 12 } },
      xAxis: axisOption(data.x, true),
      yAxis: data.y2 ? [axisOption(data.y, false), { ...axisOption(data.y2, false), splitLine: { show: false } }] : axisOption(data.y, false),
      dataZoom: lying || isNames(data.x) ? [] : [{ ...wheel, xAxisIndex: 0 }],
      series: data.series.map((one, place) => seriesOption(data, one, place)),
    };
  };

  const heatOption = (data) => {
    const cells = data.value.flatMap((line, y) => line.map((value, x) => [x, y, value]));
    const known = cells.map((one) => one[2]).filter((value) => value !== null);
    const [least, most] = [Math.min(...known), Math.max(...known)];
    const written = (value) => recrawl.format(data.scale || "number", value);
    const labels = { color: recrawl.colour("muted"), fontSize: 11, hideOverlap: true };
    const axis = (names) => ({ type: "category", data: names, axisLabel: labels, axisTick: { show: false }, axisLine: { show: false }, splitArea: { show: false } });
    return {
      animation: false, backgroundColor: "transparent", aria: { enabled: true },
      grid: { left: 8, right: 8, top: 8, bottom: 44, containLabel: true },
      xAxis: axis(data.x.names), yAxis: { ...axis(data.y.names), inverse: true },
      visualMap: { min: least, max: most > least ? most : least + 1e-9, calculable: false, orient: "horizontal", left: "center", bottom: 0, itemHeight: 160, itemWidth: 10,
        text: [`${written(most)} ${data.title}`, written(least)], textStyle: { color: recrawl.colour("muted"), fontSize: 11 }, inRange: { color: [recrawl.colour("heat-0"), recrawl.colour("heat-1")] } },
      tooltip: { confine: true, backgroundColor: recrawl.colour("surface"), borderColor: recrawl.colour("line"), textStyle: { color: recrawl.colour("ink"), fontSize: 12 },
        formatter: ({ value: [x, y, value] }) => `${recrawl.escape(data.y.names[y])}, ${recrawl.escape(data.x.names[x])}<br>${recrawl.escape(data.title)}: <b>${recrawl.escape(written(value))}</b>` },
      series: [{ type: "heatmap", data: cells, itemStyle: { borderColor: recrawl.colour("surface"), borderWidth: 1 } }],
    };
  };

  const iso = (axis, values) => (axis && axis.scale === "time" ? values.map((value) => value && new Date(value * 1000).toISOString()) : values);
  const chartColumns = (data) => {
    const columns = { series: [], [data.x.title || "x"]: [] };
    const [xName, yName] = [data.x.title || "x", (data.y.title || "y") === (data.x.title || "x") ? "y" : data.y.title || "y"];
    columns[yName] = [];
    const extra = new Set(data.series.flatMap((one) => ["low", "high", "label"].filter((name) => one[name])));
    if (data.series.some((one) => one.edges)) columns[`${xName} to`] = [];
    for (const name of extra) columns[name] = [];
    for (const one of data.series) {
      const xs = one.edges ? one.edges.slice(0, -1) : isNames(data.x) ? data.x.names : one.x;
      const ys = isNames(data.y) ? data.y.names : one.y || xs.map(() => null);
      iso(data.x, [...xs]).forEach((x, place) => {
        columns.series.push(one.name);
        columns[xName].push(x);
        columns[yName].push(ys[place]);
        if (columns[`${xName} to`]) columns[`${xName} to`].push(one.edges ? one.edges[place + 1] : null);
        for (const name of extra) columns[name].push(one[name] ? one[name][place] : null);
      });
    }
    return columns;
  };
  const heatColumns = (data) => {
    const columns = { y: [], x: [], [data.title]: [] };
    data.value.forEach((line, y) => line.forEach((value, x) => {
      columns.y.push(data.y.names[y]);
      columns.x.push(data.x.names[x]);
      columns[data.title].push(value);
    }));
    return columns;
  };

  // A kind that is one ECharts option and columns for its CSV.
  const echart = (option, columns) => (box, given) => {
    const chart = window.echarts.init(box, null, { renderer: "canvas" });
    let data = given;
    chart.setOption(option(data));
    return {
      chart,
      // Of figures with choices: draw this one.
      choose: (place) => {
        data = given.choices[place];
        chart.setOption(option(data), true);
        return data;
      },
      redraw: () => chart.setOption(option(data), true),
      resize: () => chart.resize(),
      png: () => chart.getDataURL({ pixelRatio: 2, backgroundColor: recrawl.colour("surface") }),
      svg: () => {
        const copy = window.echarts.init(null, null, { renderer: "svg", ssr: true, width: box.clientWidth, height: box.clientHeight });
        copy.setOption({ ...option(data), backgroundColor: recrawl.colour("surface") });
        const text = copy.renderToSVGString();
        copy.dispose();
        return text;
      },
      csv: () => columns(data),
      close: () => chart.dispose(),
    };
  };

  const open = async (figure) => {
    if (drawn.has(figure)) return drawn.get(figure);
    figure.dataset.begun = "";
    const work = (async () => {
      const { kind, data } = await recrawl.read(`data-${figure.dataset.chart}`);
      const draw = kinds.get(kind);
      if (!draw) throw new Error(`Nothing draws figures of kind ${kind}`);
      const handle = await draw(figure.querySelector(".plot"), data, figure);
      figure.dataset.drawn = "";
      ready.set(figure, handle);
      if (sizes) sizes.observe(figure.querySelector(".plot"));
      return handle;
    })();
    drawn.set(figure, work);
    return work;
  };

  const save = async (figure, form) => {
    const handle = await open(figure);
    const name = figure.dataset.chart;
    if (form === "csv") recrawl.save(`${name}.csv`, recrawl.csv(await handle.csv()), "text/csv");
    if (form === "png") recrawl.save(`${name}.png`, await handle.png(), "image/png");
    if (form === "svg") recrawl.save(`${name}.svg`, await handle.svg(), "image/svg+xml");
  };

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); open(entry.target); }
  }, { rootMargin: "600px" });
  const sizes = "ResizeObserver" in window ? new ResizeObserver((entries) => {
    for (const entry of entries) drawn.get(entry.target.closest("figure.chart"))?.then((handle) => handle.resize && handle.resize());
  }) : null;

  const scan = (root) => {
    for (const [figure, work] of drawn) {
      if (!figure.isConnected) { drawn.delete(figure); ready.delete(figure); work.then((handle) => handle.close && handle.close()); }
    }
    for (const figure of root.querySelectorAll("figure.chart[data-chart]:not([data-watched])")) {
      figure.dataset.watched = "";
      near.observe(figure);
    }
  };

  kinds.set("chart", echart(chartOption, chartColumns));
  kinds.set("heat", echart(heatOption, heatColumns));
  recrawl.charts = { register: (kind, draw) => kinds.set(kind, draw), scan, open, save, echart };

  // Who chooses a host in one figure chooses it in all.
  const choose = async (figure, select, name) => {
    const place = [...select.options].findIndex((one) => one.textContent === name);
    if (place < 0) return;
    select.selectedIndex = place;
    const shown = (await open(figure)).choose(place);
    figure.querySelector("figcaption").textContent = shown.words;
  };
  document.addEventListener("change", (event) => {
    const chosen = event.target instanceof Element && event.target.closest("figure.chart select[data-choose]");
    if (!chosen) return;
    const name = chosen.selectedOptions[0].textContent;
    for (const one of document.querySelectorAll(`figure.chart select[data-choose="${chosen.dataset.choose}"]`)) {
      choose(one.closest("figure.chart"), one, name);
    }
  });

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("figure.chart [data-save]");
    if (button) save(button.closest("figure.chart"), button.dataset.save);
  });
  document.addEventListener("recrawl:theme", () => {
    for (const work of drawn.values()) work.then((handle) => handle.redraw && handle.redraw());
  });
  // What is printed must be drawn before: all figures are, one after another, when there is nothing else to do.
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 200));
  const ahead = () => {
    const next = document.querySelector("figure.chart[data-chart]:not([data-begun])");
    if (next) open(next).finally(() => idle(ahead));
  };
  window.addEventListener("load", () => idle(ahead));
  // For printing, an image replaces each chart: canvas layers do not keep their places on paper.
  window.addEventListener("beforeprint", () => {
    for (const figure of document.querySelectorAll("figure.chart[data-chart]")) open(figure);
    for (const [figure, handle] of ready) {
      if (!handle.chart || figure.querySelector(".chart-print")) continue;
      const picture = document.createElement("img");
      picture.className = "chart-print";
      picture.alt = "";
      picture.src = handle.png();
      figure.querySelector(".plot").append(picture);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const picture of document.querySelectorAll(".chart-print")) picture.remove();
  });
  document.addEventListener("DOMContentLoaded", () => scan(document));
  document.addEventListener("htmx:afterSwap", () => scan(document));
})();
