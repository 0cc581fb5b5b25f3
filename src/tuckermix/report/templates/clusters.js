// ---- the clusters as rows of pictures
const FIRST = tiny ? 30 : 14;  // two rows of squares on a desktop
const shownAll = new Set();  // keys of clusters that are unfolded

function button(text, label, act, className = "quiet") {
  const node = make("button", className, text);
  node.type = "button";
  node.setAttribute("aria-label", label);
  node.addEventListener("click", act);
  return node;
}

// The first row: the clearest, then those that one should look at.
function firstOf(group) {
  if (group.members.length <= FIRST + 2) return group.members;
  const doubtful = group.members.slice(FIRST).filter((place) => data.sure[place] < DOUBTFUL).reverse().slice(0, 3);
  return group.members.slice(0, FIRST - doubtful.length).concat(doubtful);
}

function clusterRow(group) {
  const node = make("article", "cluster");
  node.dataset.key = group.key;
  node.dataset.number = group.number;
  node.style.setProperty("--mark", colourOf(group.number));
  const head = make("div", "head"), title = make("h2"), entry = make("input", "title");
  entry.type = "text";
  entry.value = group.name;
  entry.placeholder = "Cluster " + group.number;
  entry.setAttribute("aria-label", "Name of cluster " + group.number);
  entry.maxLength = 200;
  entry.spellcheck = false;
  entry.addEventListener("change", () => rename(group, entry.value));
  entry.addEventListener("keydown", (event) => {
    if (event.key === "Enter") entry.blur();
    if (event.key === "Escape") { entry.value = group.name; entry.blur(); }
  });
  title.append(icon(group.number), entry);
  const doubtful = group.members.filter((place) => data.sure[place] < DOUBTFUL).length;
  const sure = group.members.reduce((sum, place) => sum + data.sure[place], 0) / Math.max(1, group.members.length);
  const about = make("p", "about");
  about.append(make("b", "", group.members.length.toLocaleString("en")), " · " + percent(sure) + " agreement");
  if (doubtful) about.append(" · ", make("span", "warn", doubtful.toLocaleString("en") + " doubtful"));
  const acts = make("div", "acts");
  acts.append(button("Select", "Select all of " + group.title, () => keep(group.members, true)));
  if (groups.length > 1) acts.append(button("Merge…", "Merge " + group.title + " with another", () => chooseCluster(null, group)));
  if (divided(group.leaves)) acts.append(button("Split", "Split " + group.title + " in two", () => act(split, group)));
  acts.append(button("On the map", "Show " + group.title + " on the map", () => showOnMap(group)));
  head.append(title, about, acts);
  const wall = make("div", "wall"), all = shownAll.has(group.key);
  wall.setAttribute("role", "listbox");
  wall.setAttribute("aria-multiselectable", "true");
  wall.setAttribute("aria-label", group.title);
  const first = firstOf(group);
  fill(wall, all ? group.members : first, { count: 120 });
  node.append(head, wall);
  if (!group.members.length) node.append(make("p", "hint", "Empty: drop pictures here."));
  if (!all && first.length < group.members.length) {
    node.append(button("All " + group.members.length.toLocaleString("en"), "Show all of " + group.title, () => {
      shownAll.add(group.key);
      const fresh = clusterRow(group);
      node.replaceWith(fresh);
      fresh.querySelector(".tile")?.focus();
    }, "quiet all"));
  } else if (all) {
    const next = button("More", "Show more of " + group.title, () => { next.hidden = !more(wall, 240); }, "quiet all");
    next.hidden = group.members.length <= 120;
    node.append(button("Fewer", "Show fewer of " + group.title, () => {
      shownAll.delete(group.key);
      node.replaceWith(clusterRow(group));
    }, "quiet all"), next);
  }
  return node;
}

function drawClusters() {
  const focused = document.activeElement?.closest?.(".cluster")?.dataset.key;
  const before = document.activeElement?.dataset?.place;
  for (const list of lists.keys()) if (list.classList.contains("wall")) lists.delete(list);
  get("v-clusters").replaceChildren(...groups.map(clusterRow));
  if (focused === undefined) return;
  const row = Array.from(document.querySelectorAll(".cluster")).find((node) => node.dataset.key === focused);
  const again = before && get("v-clusters").querySelector('.tile[data-place="' + before + '"]');
  (again || row?.querySelector(".tile, input"))?.focus({ preventScroll: true });
}

function drawLevel() {
  const shown = words(groups.length, "cluster");
  get("lead").textContent = words(data.total, data.noun) + " in " + shown;
  get("slider").value = state.k;
  get("slider").setAttribute("aria-valuetext", shown);
  get("count-k").textContent = groups.length;
  get("fewer").disabled = state.k === LEVELS[0];
  get("finer").disabled = state.k === LEVELS[LEVELS.length - 1];
  get("chosen").hidden = state.k === data.chosen;
  get("undo").disabled = !past.length;
  get("save").disabled = !edited() && state.k === data.chosen;
  const out = Object.keys(state.out).length;
  get("trayed").textContent = out ? out.toLocaleString("en") : "";
}
