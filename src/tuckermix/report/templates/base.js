// ---- what every part uses: nodes, words, the samples of the page
const get = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const read = (id) => JSON.parse(get(id).textContent);
const data = read("data");
const served = document.documentElement.dataset.served === "1";
const n = data.leaf.length;
const every = Array.from({ length: n }, (_, place) => place);
const words = (count, one) => count.toLocaleString("en") + " " + one + (count === 1 ? "" : "s");
const percent = (thousandths) => Math.round(thousandths / 10) + " %";
const sampleOf = (place) => data.samples ? data.samples[place] : place;
const name = (place) => data.names ? data.names[place] : "sample " + sampleOf(place);
const kindOf = (place) => data.truth ? data.classes[data.truth[place]] : "";
const outliers = new Set(data.out);
const unlinked = new Set(data.unlinked);
const file = (place) => data.base === null || unlinked.has(place) ? null :
  data.base + name(place).split("/").map(encodeURIComponent).join("/");
const DOUBTFUL = 600;

function say(text) {
  get("said").textContent = text;
  get("said").classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => get("said").classList.remove("shown"), 4000);
}

function download(text, type, title) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type: type + ";charset=utf-8" }));
  link.download = title;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// ---- where samples lie in few dimensions: near is alike
const bytes = Uint8Array.from(atob(data.near), (letter) => letter.charCodeAt(0));
const width = n ? bytes.length / n : 0;
function distances(point) {
  const found = new Float64Array(n);
  for (let place = 0; place < n; place += 1) {
    let sum = 0;
    for (let axis = 0; axis < width; axis += 1) sum += (bytes[place * width + axis] - point[axis]) ** 2;
    found[place] = sum;
  }
  return found;
}
function middle(places) {
  const mean = new Float64Array(width);
  for (const place of places) {
    for (let axis = 0; axis < width; axis += 1) mean[axis] += bytes[place * width + axis] / places.length;
  }
  return mean;
}
function similar(places, count) {
  const asked = new Set(places), away = distances(middle(places));
  const order = every.filter((place) => !asked.has(place)).sort((a, b) => away[a] - away[b] || a - b);
  return count ? order.slice(0, count) : places.concat(order);
}
