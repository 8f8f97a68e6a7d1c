// What every page of ours needs: data blocks, how values are written, saving files, light and dark.
(() => {
  "use strict";
  const recrawl = (window.recrawl = window.recrawl || {});

  // The value of a data block; large ones are packed.
  recrawl.read = async (id) => {
    const block = document.getElementById(id);
    if (!block) throw new Error(`There is no data block ${id}`);
    if (block.type !== "application/gzip+json") return JSON.parse(block.textContent);
    const bytes = Uint8Array.from(atob(block.textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };

  const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  // Text that may stand in markup. Everything from an archive goes through here where markup cannot be avoided.
  recrawl.escape = (text) => String(text).replace(/[&<>"']/g, (sign) => SIGNS[sign]);

  const UNITS = [[31557600, "y"], [86400, "d"], [3600, "h"], [60, "min"]];
  const digits = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace(/\.?0+e/, "e");
    return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 7 : 3 });
  };
  const duration = (seconds) => {
    for (const [unit, name] of UNITS) if (Math.abs(seconds) >= unit) return `${digits(seconds / unit)} ${name}`;
    return `${digits(seconds)} s`;
  };
  const time = (seconds, length = 16) => new Date(seconds * 1000).toISOString().slice(0, length).replace("T", " ");
  // How a value of a column or an axis is written.
  recrawl.format = (kind, value) => {
    const estimated = ["number", "share", "seconds"].includes(kind);
    if (value === null || value === undefined || Number.isNaN(value)) return estimated ? "not known" : "–";
    switch (kind) {
      case "count": return Number(value).toLocaleString("en");
      case "number": return digits(Number(value));
      case "share": return `${digits(100 * value)}%`;
      case "seconds": return duration(Number(value));
      case "time": return time(Number(value));
      case "yes": return value ? "yes" : "no";
      default: return String(value);
    }
  };

  const cell = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    // A spreadsheet takes a text that begins like this for a formula.
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  // Columns of equal or unequal length as CSV.
  recrawl.csv = (columns) => {
    const names = Object.keys(columns);
    const rows = Math.max(0, ...names.map((name) => columns[name].length));
    const lines = [names.map(cell).join(",")];
    for (let row = 0; row < rows; row += 1) lines.push(names.map((name) => cell(columns[name][row])).join(","));
    return `${lines.join("\r\n")}\r\n`;
  };

  recrawl.save = (name, content, type) => {
    const link = document.createElement("a");
    const address = typeof content === "string" && content.startsWith("data:")
      ? content : URL.createObjectURL(new Blob([content], { type }));
    link.href = address;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    if (address.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(address), 60000);
  };

  // The colour of a token: "series-1", "ink", or the name of a change class.
  const CLASSES = { unchanged: 1, changed: 1, links: 1, missing: 1, new: 1, unseen: 1 };
  recrawl.colour = (token) => {
    const name = token === "content" ? "class-changed" : CLASSES[token] ? `class-${token}` : token;
    const [light, dark] = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).match(/#[0-9a-f]+/gi) ?? ["#808080"];
    return recrawl.isDark() ? dark ?? light : light;
  };

  const stored = () => { try { return localStorage.getItem("recrawl-theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("recrawl-theme", theme); } catch { /* a file may not store */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  recrawl.isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : system.matches;
  };
  const told = () => document.dispatchEvent(new CustomEvent("recrawl:theme"));
  if (stored()) document.documentElement.dataset.theme = stored();
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("[data-theme-switch]")) return;
    const theme = recrawl.isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    keep(theme);
    told();
  });
  system.addEventListener("change", told);

  // Paper is light.
  let before = null;
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme ?? "";
    document.documentElement.dataset.theme = "light";
    told();
  });
  addEventListener("afterprint", () => {
    if (before) document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    told();
  });
})();
