// ---- the views, the slider, and the start
const VIEWS = { clusters: drawClusters, map: drawMap, all: drawAll, tray: drawTray };
const stale = new Set(Object.keys(VIEWS));
let view_ = "clusters";
function refresh() {
  drawLevel();
  Object.keys(VIEWS).forEach((key) => stale.add(key));
  update();
  told();
}
function update() {
  if (stale.delete(view_)) VIEWS[view_]();
}
function show(key) {
  view_ = key;
  for (const one of Object.keys(VIEWS)) get("v-" + one).hidden = one !== key;
  document.querySelectorAll(".tab").forEach((tab) => {
    if (tab.dataset.view === key) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  });
  update();
}
document.querySelectorAll(".tab").forEach((tab) => tab.addEventListener("click", () => show(tab.dataset.view)));
document.querySelector('[data-view="tray"]').dataset.drop = "out";

const slider = get("slider");
slider.min = LEVELS[0];
slider.max = LEVELS[LEVELS.length - 1];
slider.addEventListener("input", () => setLevel(Number(slider.value)));
get("fewer").addEventListener("click", () => setLevel(LEVELS[LEVELS.indexOf(state.k) - 1]));
get("finer").addEventListener("click", () => setLevel(LEVELS[LEVELS.indexOf(state.k) + 1]));
get("chosen").addEventListener("click", () => { setLevel(data.chosen); slider.focus(); });
get("level").hidden = LEVELS.length < 2;
// Levels that are found again in parts of the samples are marked below the slider.
for (const level of new Set([data.chosen, ...data.steady])) {
  const tick = make("i", level === data.chosen ? "own" : "");
  tick.style.left = 100 * (level - LEVELS[0]) / Math.max(1, LEVELS[LEVELS.length - 1] - LEVELS[0]) + "%";
  get("ticks").append(tick);
}

get("undo").addEventListener("click", undo);
get("save").addEventListener("click", () => {
  download(JSON.stringify(edits(), null, 1) + "\n", "application/json", "edits.json");
  say("Now run: tuckermix apply RESULT edits.json");
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !event.target.closest("input[type=text], input[type=search]")) {
    event.preventDefault();
    undo();
  }
  if (event.key === "Escape" && selected.size && !document.querySelector("dialog[open]")) keep(chosen(), false);
});
document.querySelectorAll("td[data-share]").forEach((node) => {
  node.style.setProperty("--share", node.dataset.share / 100);
  node.classList.toggle("strong", node.dataset.share > 45);
});

restore();
onChange(refresh);
document.body.classList.toggle("tinies", tiny && data.ratios.length === 1);
get("bar").hidden = false;
document.documentElement.classList.add("live");
refresh();
