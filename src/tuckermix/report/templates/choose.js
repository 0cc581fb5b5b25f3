// ---- the selection, and what can be done with it
function told() {
  const some = selected.size;
  get("basket").hidden = !some;
  document.body.classList.toggle("picking", some > 0);
  get("picked").textContent = some.toLocaleString("en") + " selected";
  const back = some && Array.from(selected).every((place) => state.out[place]);
  get("b-out").textContent = back ? "Take back" : "Mark as wrong";
  if (viewed >= 0) {
    get("v-keep").setAttribute("aria-pressed", selected.has(viewed));
    get("v-keep").textContent = selected.has(viewed) ? "Selected" : "Select";
  }
}
// Do something and let go of the selection that it concerned.
function act(what, ...given) {
  if (Array.isArray(given[0])) given[0].forEach((place) => selected.delete(place));
  what(...given);
}
const chosen = () => Array.from(selected).sort((a, b) => a - b);

// Choose a cluster: to move samples to, or to merge another with.
function chooseCluster(places, group) {
  get("m-title").textContent = group ? "Merge " + group.title + " with" : "Move " + words(places.length, data.noun) + " to";
  const here = places && places.length === 1 ? groupOf[places[0]] : group;
  const away = distances(middle(places ?? group.members));
  const near = groups.filter((one) => one !== here).map((one) =>
    [one, one.members.reduce((sum, place) => sum + away[place], 0) / Math.max(1, one.members.length)]);
  near.sort((a, b) => a[1] - b[1]);
  get("m-list").replaceChildren(...near.map(([one]) => {
    const item = make("li"), choice = button("", one.title, () => {
      get("mover").close();
      if (group) act(merge, group, one); else act(move, places, one);
      if (viewer.open) view(viewed);
    }, "target");
    const strip = make("span", "strip");
    for (const place of one.members.slice(0, 4)) strip.append(picture(place));
    choice.append(icon(one.number), make("span", "", one.title), make("small", "", one.members.length.toLocaleString("en")), strip);
    item.append(choice);
    return item;
  }));
  get("mover").showModal();
}
get("m-close").addEventListener("click", () => get("mover").close());
get("mover").addEventListener("click", (event) => { if (event.target === get("mover")) get("mover").close(); });
get("mover").addEventListener("keydown", (event) => {
  const all = Array.from(get("m-list").querySelectorAll("button")), here = all.indexOf(document.activeElement);
  const next = { ArrowDown: here + 1, ArrowUp: here - 1 }[event.key];
  if (next === undefined) return;
  all[Math.max(0, Math.min(all.length - 1, next))]?.focus();
  event.preventDefault();
});

// As the library writes CSV: what a spreadsheet takes for a formula gets an apostrophe in front.
function cell(value) {
  const text = /^'*[=+\-@\t\r\n＝＋－＠]/.test(value) ? "'" + value : value;
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}
const rowOf = (place) => ({
  name: name(place), label: groupOf[place] ? groupOf[place].number : -1, cluster: groupOf[place]?.name ?? "",
  ...(data.truth ? { class: kindOf(place) } : {}),
});
get("b-csv").addEventListener("click", () => {
  const rows = chosen().map(rowOf);
  // A label is a number, and -1 no formula.
  const line = (row) => Object.entries(row).map(([key, value]) => key === "label" ? value : cell(value)).join(",");
  download([Object.keys(rows[0]).join(","), ...rows.map(line)].join("\n") + "\n", "text/csv", "selection.csv");
});
get("b-json").addEventListener("click", () =>
  download(JSON.stringify(chosen().map(rowOf), null, 1) + "\n", "application/json", "selection.json"));
get("b-move").addEventListener("click", () => chooseCluster(chosen()));
get("b-out").addEventListener("click", () => {
  const places = chosen();
  act(places.every((place) => state.out[place]) ? takeBack : setAside, places);
});
get("b-like").addEventListener("click", () => findSimilar(chosen()));
get("b-none").addEventListener("click", () => keep(chosen(), false));
// A contact sheet of the selection, for paper.
get("b-print").addEventListener("click", () => {
  get("sheetpage").replaceChildren(...chosen().map((place) => {
    const figure = make("figure");
    const shown = picture(place);
    shown.loading = "eager";
    figure.append(shown, make("figcaption", "", name(place)), make("small", "", noteOf(place)));
    return figure;
  }));
  document.body.classList.add("contact");
  get("sheetpage").hidden = false;
  print();
});
addEventListener("afterprint", () => {
  document.body.classList.remove("contact");
  get("sheetpage").hidden = true;
});
