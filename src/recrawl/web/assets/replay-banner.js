// The line above a replayed page: when it was archived, and how sharp that is. All that comes from an archive is text.
"use strict";
(function () {
  const banner = document.getElementById("recrawl-banner");
  const when = document.getElementById("recrawl-when");
  const sharpness = document.getElementById("recrawl-sharpness");

  function duration(seconds) {
    const size = Math.abs(seconds);
    for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (size >= unit) return (size / unit).toPrecision(3).replace(/\.?0+$/, "") + " " + name;
    }
    return Math.round(size) + " s";
  }

  function tell(facts) {
    when.textContent = "Archived " + facts.datetime;
    const said = [];
    if (Math.abs(facts.distance_seconds) >= 1) {
      const side = facts.distance_seconds < 0 ? " before" : " after";
      said.push(duration(facts.distance_seconds) + side + " the requested time");
    }
    if (facts.provably_valid) said.push("provably as it was");
    else if (facts.expected_changes !== null) said.push("about " + facts.expected_changes.toPrecision(2) + " changes between");
    if (facts.parts && facts.parts.count) {
      said.push(facts.parts.archived + " of " + facts.parts.count + " parts, " + duration(facts.parts.spread_seconds) + " apart");
      said.push("existed as shown: " + facts.parts.existed_as_shown);
      const damage = facts.parts.damage;
      said.push("damage by what is missing: " + (damage === null ? "not known" : damage.toFixed(2) + " of 1"));
    }
    sharpness.textContent = said.length ? "· " + said.join(" · ") : "";
  }

  function ask(url, at) {
    if (!url) return;
    const query = new URLSearchParams({ url: url, at: at || "" });
    fetch(banner.dataset.api + "?" + query, { credentials: "include" }).then(function (answer) {
      return answer.ok ? answer.json() : null;
    }).then(function (facts) {
      if (facts) tell(facts);
    }).catch(function () {
      sharpness.textContent = "";
    });
  }

  window.addEventListener("message", function (event) {
    const frame = document.getElementById("replay_iframe");
    if (event.source !== frame.contentWindow || !event.data) return;
    if (event.data.wb_type !== "load" && event.data.wb_type !== "replace-url") return;
    // The page that was asked for first stays one of the time asked for, whatever the time of its copy.
    const first = event.data.url === banner.dataset.url;
    ask(event.data.url, first ? banner.dataset.at : event.data.ts);
  });
  const given = JSON.parse(document.getElementById("recrawl-frame").textContent);
  given.url += window.location.hash;
  given.iframe = "#replay_iframe";
  window.cframe = new ContentFrame(given);
  ask(banner.dataset.url, banner.dataset.at);
})();
