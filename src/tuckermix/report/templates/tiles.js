// ---- tiles: pictures that can be chosen, opened, dragged; one of each list takes the focus
const selected = new Set();
const lists = new Map();  // the lists of tiles on the page, each with its places
let anchor = null;

const noteOf = (place) => {
  const group = groupOf[place], kind = kindOf(place);
  return (group ? group.title + ", " + percent(data.sure[place]) : "set aside") +
    (outliers.has(place) ? ", outlier" : "") + (kind === "" ? "" : ", class " + kind);
};

function tile(place, caption) {
  const node = make("div", "tile");
  node.setAttribute("role", "option");
  node.setAttribute("aria-selected", selected.has(place));
  node.setAttribute("aria-label", name(place) + ", " + noteOf(place));
  node.title = name(place);
  node.tabIndex = -1;
  node.draggable = true;
  node.dataset.place = place;
  node.style.setProperty("--ratio", ratio(place));
  if (groupOf[place]) node.style.setProperty("--mark", colourOf(groupOf[place].number));
  const tick = make("span", "tick");
  tick.setAttribute("aria-hidden", "true");
  node.append(picture(place), tick);
  if (data.sure[place] < DOUBTFUL || outliers.has(place)) {
    const doubt = make("span", "doubt", "?");
    doubt.title = "Doubtful: " + percent(data.sure[place]);
    node.append(doubt);
  }
  if (state.moved[place] !== undefined) node.append(make("span", "hand", "moved"));
  if (caption) node.append(make("span", "caption", name(place)), make("span", "note", noteOf(place)));
  return node;
}

// Fill a list with tiles, `count` of them at first.
function fill(list, places, { count = Infinity, caption = false } = {}) {
  lists.set(list, { places, caption });
  list.replaceChildren();
  more(list, count);
  list.hidden = !places.length;
}
function more(list, count) {
  const { places, caption } = lists.get(list), fresh = document.createDocumentFragment();
  const from = list.childElementCount, to = Math.min(places.length, from + count);
  for (let index = from; index < to; index += 1) {
    const node = tile(places[index], caption);
    node.setAttribute("aria-setsize", places.length);
    node.setAttribute("aria-posinset", index + 1);
    fresh.append(node);
  }
  list.append(fresh);
  if (from === 0 && list.firstChild) list.firstChild.tabIndex = 0;
  return to < places.length;
}

function keep(places, wanted) {
  for (const place of places) {
    if (wanted) selected.add(place); else selected.delete(place);
  }
  document.querySelectorAll(".tile").forEach((node) =>
    node.setAttribute("aria-selected", selected.has(Number(node.dataset.place))));
  told();
}
const toggle = (place) => keep([place], !selected.has(place));
// What an act concerns: the selection if the sample is in it, else the sample.
const meant = (place) => selected.has(place) ? Array.from(selected) : [place];

function focusOn(node) {
  node.parentElement.querySelectorAll(".tile[tabindex='0']").forEach((other) => { other.tabIndex = -1; });
  node.tabIndex = 0;
  node.focus();
}
function beside(node, key) {
  const list = node.parentElement, all = Array.from(list.children), here = all.indexOf(node);
  if (key === "ArrowRight" && here + 1 === all.length) more(list, 60);
  if (key === "ArrowRight") return list.children[here + 1];
  if (key === "ArrowLeft") return all[here - 1];
  if (key === "Home") return all[0];
  if (key === "End") return all[all.length - 1];
  const tops = all.map((other) => other.offsetTop), centre = node.offsetLeft + node.offsetWidth / 2;
  const down = key === "ArrowDown";
  const rows = tops.filter((top) => down ? top > tops[here] + 4 : top < tops[here] - 4);
  if (!rows.length) return undefined;
  const row = down ? Math.min(...rows) : Math.max(...rows);
  return all.filter((_, index) => Math.abs(tops[index] - row) < 5)
    .reduce((a, b) => Math.abs(a.offsetLeft + a.offsetWidth / 2 - centre) <= Math.abs(b.offsetLeft + b.offsetWidth / 2 - centre) ? a : b);
}

document.addEventListener("click", (event) => {
  const node = event.target.closest(".tile");
  if (!node) return;
  const place = Number(node.dataset.place), { places } = lists.get(node.parentElement);
  if (event.shiftKey && anchor !== null && places.includes(anchor)) {
    const [from, to] = [places.indexOf(anchor), places.indexOf(place)].sort((a, b) => a - b);
    keep(places.slice(from, to + 1), true);
  } else if (event.target.closest(".tick") || event.ctrlKey || event.metaKey || event.shiftKey) {
    toggle(place);
  } else {
    open(place, places);
  }
  anchor = place;
  if (!get("viewer").open) focusOn(node);
});
document.addEventListener("keydown", (event) => {
  const node = event.target.closest(".tile");
  if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
  const place = Number(node.dataset.place);
  const acts = {
    Enter: () => open(place, lists.get(node.parentElement).places),
    " ": () => { toggle(place); anchor = place; },
    m: () => chooseCluster(meant(place)),
    x: () => act(setAside, meant(place)),
    f: () => findSimilar(meant(place)),
  };
  if (/^Arrow|^Home$|^End$/.test(event.key)) {
    const next = beside(node, event.key);
    if (next) focusOn(next);
  } else if (acts[event.key]) acts[event.key]();
  else return;
  event.preventDefault();
});

// ---- dragging tiles onto clusters
let dragged = [];
document.addEventListener("dragstart", (event) => {
  const node = event.target.closest?.(".tile");
  if (!node) return;
  dragged = meant(Number(node.dataset.place));
  event.dataTransfer.setData("text/plain", dragged.map(name).join("\n"));
  event.dataTransfer.effectAllowed = "move";
  document.body.classList.add("dragging");
});
const targetOf = (event) => dragged.length ? event.target.closest?.(".cluster, [data-drop]") : null;
document.addEventListener("dragover", (event) => {
  document.querySelectorAll(".over").forEach((node) => node.classList.remove("over"));
  const target = targetOf(event);
  if (!target) return;
  event.preventDefault();
  target.classList.add("over");
});
document.addEventListener("drop", (event) => {
  const target = targetOf(event), places = dragged;
  if (!target) return;
  event.preventDefault();
  if (target.dataset.drop === "out") act(setAside, places);
  else act(move, places, groups.find((group) => group.key === target.dataset.key));
});
document.addEventListener("dragend", () => {
  dragged = [];
  document.body.classList.remove("dragging");
  document.querySelectorAll(".over").forEach((node) => node.classList.remove("over"));
});
