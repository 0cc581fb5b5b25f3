// ---- clusters as sets of leaves of the tree, and what people change about them
const LEVELS = Object.keys(data.levels).map(Number).sort((a, b) => a - b);
const N_LEAVES = data.levels[data.chosen].length;
const listeners = [];
const onChange = (listener) => listeners.push(listener);
const EMPTY = { k: data.chosen, ops: {}, names: {}, moved: {}, out: Object.fromEntries(data.aside.map((place) => [place, true])) };
const STORE = "tuckermix " + data.id;
// What was set aside before stays so until it is taken back.
let state = structuredClone(EMPTY);
let past = [];
let groups = [];       // the clusters that are shown: leaves, members, number, name
let groupOf = [];      // of each sample, null for what is set aside

// Divide leaves where the tree does: the part with the lower label there comes first.
function divided(leaves) {
  for (const level of LEVELS) {
    const labels = leaves.map((leaf) => data.levels[level][leaf]);
    const lowest = Math.min(...labels);
    const rest = leaves.filter((_, index) => labels[index] !== lowest);
    if (rest.length) return [leaves.filter((_, index) => labels[index] === lowest), rest];
  }
  return null;
}

function byLabel(level) {
  const parts = [];
  data.levels[level].forEach((label, leaf) => (parts[label] ??= []).push(leaf));
  return parts;
}

function partition() {
  let parts = byLabel(state.k).filter(Boolean);
  for (const [act, ...leaves] of state.ops[state.k] ?? []) {
    const meant = parts.filter((part) => part.some((leaf) => leaves.includes(leaf)));
    const others = parts.filter((part) => !meant.includes(part));
    if (act === "merge") parts = others.concat([meant.flat().sort((a, b) => a - b)]);
    else parts = others.concat(meant.flatMap((part) => divided(part) ?? [part]));
  }
  return parts;
}

// The edits by numbers: first splits along the tree, then merges; see `apply_edits` in Python.
function numbered(parts) {
  const home = [];
  parts.forEach((part, index) => part.forEach((leaf) => { home[leaf] = index; }));
  const numbers = byLabel(state.k), split = [];
  for (;;) {
    const torn = numbers.findIndex((part) => part && new Set(part.map((leaf) => home[leaf])).size > 1);
    if (torn < 0) break;
    const [kept, fresh] = divided(numbers[torn]);
    numbers[torn] = kept;
    numbers.push(fresh);
    split.push(torn);
  }
  const owned = parts.map(() => []);
  numbers.forEach((part, number) => { if (part) owned[home[part[0]]].push(number); });
  return { split, owned, numbers: owned.map((own) => Math.min(...own)) };
}

const keyOf = (leaves) => leaves.slice().sort((a, b) => a - b).join(" ");
const ORIGINAL = {};
byLabel(data.chosen).forEach((leaves, number) => {
  if (data.called[number]) ORIGINAL[keyOf(leaves)] = data.called[number];
});

function regroup() {
  const parts = partition(), { numbers } = numbered(parts), home = [];
  groups = parts.map((leaves, index) => {
    leaves.forEach((leaf) => { home[leaf] = index; });
    const key = keyOf(leaves);
    return { leaves, key, number: numbers[index], name: state.names[key] ?? ORIGINAL[key] ?? "", members: [] };
  });
  groupOf = every.map((place) => {
    if (state.out[place]) return null;
    const group = groups[home[state.moved[place] ?? data.leaf[place]]];
    group.members.push(place);
    return group;
  });
  for (const group of groups) {
    group.title = group.name || "Cluster " + group.number;
    const away = distances(middle(group.members));
    const far = group.members.map((place) => Math.round(1000 * Math.sqrt(away[place])));
    const order = group.members.map((_, index) => index).sort((a, b) =>
      data.sure[group.members[b]] - data.sure[group.members[a]] || far[a] - far[b] ||
      group.members[a] - group.members[b]);
    group.members = order.map((index) => group.members[index]);
  }
  groups.sort((a, b) => b.members.length - a.members.length || a.number - b.number);
}

const edited = () => JSON.stringify({ ...state, k: 0 }) !== JSON.stringify({ ...EMPTY, k: 0 });

function changed() {
  try {
    if (edited() || state.k !== data.chosen) localStorage.setItem(STORE, JSON.stringify(state));
    else localStorage.removeItem(STORE);
  } catch { /* a frame without storage: the edits last as long as the page */ }
  regroup();
  listeners.forEach((listener) => listener());
}

function change(text, act) {
  past.push(JSON.stringify(state));
  act();
  changed();
  say(text);
}
function undo() {
  if (!past.length) return;
  state = JSON.parse(past.pop());
  changed();
  say("Undone");
}
function restore() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE));
    if (kept && data.levels[kept.k]) state = { ...structuredClone(EMPTY), ...kept };
  } catch { /* nothing is kept */ }
  regroup();
}

const operate = (...op) => { (state.ops[state.k] ??= []).push(op); };
function setLevel(level) {
  const found = LEVELS.reduce((a, b) => Math.abs(b - level) < Math.abs(a - level) ? b : a);
  if (found === state.k) return;
  state.k = found;
  changed();
}
function rename(group, text) {
  const wanted = text.trim().slice(0, 200);
  if (wanted === group.name) return;
  change(wanted ? "Named " + wanted : "Name removed", () => { state.names[group.key] = wanted; });
}
function merge(group, other) {
  change(group.title + " and " + other.title + " are one now", () => {
    const kept = group.name || other.name;
    operate("merge", group.leaves[0], other.leaves[0]);
    if (kept) state.names[keyOf(group.leaves.concat(other.leaves))] = kept;
  });
}
function split(group) {
  if (!divided(group.leaves)) return;
  change(group.title + " was split in two", () => operate("split", group.leaves[0]));
}
function move(places, group) {
  change(words(places.length, data.noun) + " moved to " + group.title, () => {
    for (const place of places) {
      delete state.out[place];
      if (group.leaves.includes(data.leaf[place])) delete state.moved[place];
      else state.moved[place] = group.leaves[0];
    }
  });
}
function setAside(places) {
  change(words(places.length, data.noun) + " set aside", () => places.forEach((place) => { state.out[place] = true; }));
}
function takeBack(places) {
  change(words(places.length, data.noun) + " taken back", () => places.forEach((place) => { delete state.out[place]; }));
}

function edits() {
  const parts = partition(), { split: splits, owned } = numbered(parts);
  const unique = data.names && new Set(data.names).size === n;
  const who = (place) => unique ? name(place) : String(sampleOf(place));
  const names = {}, moved = {};
  for (const group of groups) if (group.name || ORIGINAL[group.key]) names[group.number] = group.name;
  for (const place of Object.keys(state.moved).map(Number)) {
    if (!state.out[place]) moved[who(place)] = groupOf[place].number;
  }
  return {
    format: 1, n_clusters: state.k, names, merge: owned.filter((own) => own.length > 1),
    split: splits, move: moved, exclude: Object.keys(state.out).map((place) => who(Number(place))),
  };
}
