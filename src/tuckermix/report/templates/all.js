// ---- all pictures: found by name, cluster and likeness; tiles are made as they come into sight
const list = get("list");
const byName = new Intl.Collator("en", { numeric: true }).compare;
let asked = null;    // what the listed ones are to resemble
const BATCH = 120;

function drawAll() {
  const which = get("which"), before = which.value;
  const some = outliers.size ? [["outliers", "outliers (" + outliers.size + ")"]] : [];
  which.replaceChildren(...[["", "all"], ...groups.map((group) =>
    [group.key, group.title + " (" + group.members.length.toLocaleString("en") + ")"]), ...some].map(([value, text]) => {
    const option = make("option", "", text);
    option.value = value;
    return option;
  }));
  which.value = before;
  if (which.selectedIndex < 0) which.value = "";
  const part = get("search").value.trim().toLowerCase(), order = get("order").value;
  let listed = asked ? similar(asked) : every;
  if (which.value === "outliers") listed = listed.filter((place) => outliers.has(place));
  else if (which.value) listed = listed.filter((place) => groupOf[place]?.key === which.value);
  if (part) listed = listed.filter((place) => name(place).toLowerCase().includes(part));
  const sure = data.sure;
  const orders = {
    sure: (a, b) => sure[b] - sure[a] || a - b,
    doubt: (a, b) => sure[a] - sure[b] || a - b,
    name: (a, b) => byName(name(a), name(b)) || a - b,
  };
  if (!asked) listed = listed.slice().sort(orders[order] ?? orders.sure);
  get("likeness").hidden = !asked;
  if (asked) get("like").textContent = "Most similar to " + (asked.length === 1 ? name(asked[0]) : words(asked.length, data.noun)) + " first";
  fill(list, listed, { count: BATCH, caption: true });
  get("count").textContent = listed.length.toLocaleString("en") + " of " + words(n, data.noun);
  get("every").disabled = !listed.length;
}
function findSimilar(places) {
  asked = places;
  get("search").value = "";
  show("all");
  get("which").value = "";
  drawAll();
  scrollTo(0, 0);
}
get("unlike").addEventListener("click", () => { asked = null; drawAll(); });
get("which").addEventListener("change", drawAll);
get("order").addEventListener("change", drawAll);
get("search").addEventListener("input", drawAll);
get("every").addEventListener("click", () => keep(lists.get(list).places, true));
new IntersectionObserver((seen) => {
  if (seen.some((one) => one.isIntersecting) && lists.has(list)) more(list, BATCH);
}, { rootMargin: "1200px" }).observe(get("more"));
