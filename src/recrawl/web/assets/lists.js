// Lists that renew themselves. Rows are kept by their id: only cells that say something else are filled again, so that
// whoever reads, marks text, or has the focus in the list stays where they are.
(() => {
  "use strict";
  const EVERY = 5000;
  // A list that takes long to get is got less often: the server has other things to do.
  const SHARE = 20;
  const MOST_SCREENS = 40;
  const ROWS = "#rows > tr:not(.more)";
  const FOCUSED = "a, button, input:not([type=hidden])";

  const isBusy = (list) => document.hidden || list.querySelector("#refusal, [hx-trigger^='load'], .htmx-request") !== null
    || (!getSelection().isCollapsed && list.contains(getSelection().anchorNode));

  const parsed = async (address) => {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (!answer.ok) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  // As many rows as are shown, screen by screen, each beginning where the one before ended; null if one is not told, or
  // if so many are shown that they cannot all be got: nobody's list is made shorter. While it is read the order may
  // change, so that a row comes twice; the first counts.
  const gather = async (address, shown) => {
    const found = { list: null, rows: [], more: null };
    const met = new Set();
    for (let screen = 0; address && screen < MOST_SCREENS && (screen === 0 || found.rows.length < shown); screen += 1) {
      const list = (await parsed(address))?.getElementById("results");
      if (!list) return null;
      found.list ??= list;
      for (const row of list.querySelectorAll(ROWS)) if (!met.has(row.id)) found.rows.push(row);
      for (const row of found.rows) met.add(row.id);
      if (screen === 0 && shown > MOST_SCREENS * found.rows.length) return null;
      found.more = list.querySelector("#rows > tr.more");
      address = found.more?.querySelector("a").getAttribute("href");
    }
    return address && found.rows.length < shown ? null : found;
  };

  const refresh = (row, fresh) => {
    [...fresh.cells].forEach((cell, at) => {
      const old = row.cells[at];
      if (old.innerHTML === cell.innerHTML) return;
      const focused = old.contains(document.activeElement);
      old.replaceChildren(...cell.childNodes);
      if (focused) old.querySelector(FOCUSED)?.focus({ preventScroll: true });
    });
  };

  // Put rows in the order of the fresh ones, with as few moves as one pass needs.
  const order = (body, rows) => {
    const before = new Map([...body.querySelectorAll("tr[id]")].map((row) => [row.id, row]));
    const wanted = new Set(rows.map((row) => row.id));
    before.forEach((row, id) => { if (!wanted.has(id)) row.remove(); });
    let place = body.firstElementChild;
    for (const fresh of rows) {
      const row = before.get(fresh.id) ?? document.adoptNode(fresh);
      if (row !== fresh) refresh(row, fresh);
      if (row === place) place = place.nextElementSibling;
      else body.insertBefore(row, place);
    }
  };

  const follow = (body, more) => {
    const old = body.querySelector("tr.more");
    if (old && more && old.querySelector("a").getAttribute("href") === more.querySelector("a").getAttribute("href")) return;
    const focused = old?.contains(document.activeElement);
    old?.remove();
    if (!more) return;
    body.append(document.adoptNode(more));
    window.htmx.process(more);
    if (focused) more.querySelector("a").focus({ preventScroll: true });
  };

  // The row that stays where it is on the screen: the one with the focus, else the first that can be seen.
  const anchor = (body) => document.activeElement.closest("#rows > tr[id]")
    ?? [...body.querySelectorAll("tr[id]")].find((row) => row.getBoundingClientRect().top >= 0);

  const fill = (list, found) => {
    const body = list.querySelector("#rows");
    const held = anchor(body);
    const top = held?.getBoundingClientRect().top;
    const active = document.activeElement;
    order(body, found.rows);
    follow(body, found.more);
    list.querySelectorAll("p [id]").forEach((old) => {
      const text = found.list.querySelector(`#${old.id}`)?.textContent ?? old.textContent;
      if (old.textContent !== text) old.textContent = text;
    });
    if (active.isConnected && document.activeElement !== active) active.focus({ preventScroll: true });
    if (!held?.isConnected || scrollY <= 0) return;
    const moved = held.getBoundingClientRect().top - top;
    // At once, and only if need be: it would end a smooth scroll that is under way.
    if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
  };

  const renew = async () => {
    const list = document.querySelector("[data-list]");
    if (!list || isBusy(list)) return;
    const shown = list.querySelectorAll(ROWS).length;
    const found = await gather(list.dataset.list, shown);
    // Meanwhile somebody may have searched, asked for more rows, or marked some text.
    if (!found || !list.isConnected || isBusy(list) || list.querySelectorAll(ROWS).length !== shown) return;
    if (list.querySelector("#rows") && found.list.querySelector("#rows")) {
      fill(list, found);
    } else if (list.textContent.trim() !== found.list.textContent.trim()) {
      const fresh = document.adoptNode(found.list);
      list.replaceWith(fresh);
      window.htmx.process(fresh);
    }
  };

  const again = async () => {
    const began = performance.now();
    // The server may be away for a while; what was last known stays.
    await renew().catch(() => {});
    setTimeout(again, Math.max(EVERY, SHARE * (performance.now() - began)));
  };
  addEventListener("DOMContentLoaded", () => setTimeout(again, EVERY));
})();
