// ---- pictures: of their own, from the server of `tuckermix open`, or from the sheet of thumbnails
const pictures = new Map();
document.querySelectorAll("#v-clusters img").forEach((image) => pictures.set(Number(image.dataset.place), image.src));
for (const [place, address] of Object.entries(read("pictures"))) pictures.set(Number(place), address);
const [TILE_WIDTH, TILE_HEIGHT, COLUMNS, ROWS] = data.sheet;
const sheet = new Image();
sheet.src = read("sheet");
const marked = new Map((data.marks ?? every).map((place, mark) => [place, mark]));
const sizeOf = (mark) => data.sizes.length > 1 ? data.sizes[mark] : data.sizes[0];
const tiny = Math.max(TILE_WIDTH, TILE_HEIGHT) < 48;
const exact = tiny || data.fine;  // enlarged, each of their pixels stays a square
function ratio(place) {
  const mark = marked.get(place);
  const found = mark === undefined ? 100 : data.ratios.length > 1 ? data.ratios[mark] : data.ratios[0];
  return Math.min(400, Math.max(25, found)) / 100;
}
function drawThumb(context, mark, x, y, w, h) {
  const [width, height] = sizeOf(mark);
  context.drawImage(sheet, mark % COLUMNS * TILE_WIDTH, Math.floor(mark / COLUMNS) * TILE_HEIGHT, width, height, x, y, w, h);
}
const address = (place, side) => served ? "p/" + sampleOf(place) + "/" + side : pictures.get(place);

// Small pictures come from the sheet, so that thousands of them cost one file. They become images:
// a canvas for each would be a layer of its own for the browser, and scrolling slow.
const cut = make("canvas");
function thumb(mark) {
  [cut.width, cut.height] = sizeOf(mark);
  drawThumb(cut.getContext("2d", { willReadFrequently: true }), mark, 0, 0, cut.width, cut.height);
  return cut.toDataURL();
}
function picture(place, side = 400) {
  const mark = marked.get(place), fromFile = served && data.base !== null && !unlinked.has(place);
  if (!pictures.has(place) && !fromFile && mark === undefined) return make("span", "nothing", name(place));
  const image = make("img", exact ? "pixels" : "");
  image.alt = "";
  image.draggable = false;
  image.decoding = "async";
  image.loading = "lazy";
  if (pictures.has(place) || fromFile) image.src = pictures.get(place) ?? address(place, side);
  else if (sheet.complete) image.src = thumb(mark);
  else sheet.addEventListener("load", () => { image.src = thumb(mark); });
  return image;
}

// ---- marks differ by shape as well as by colour
const SHAPES = ["", "-.9-.9 .9-.9 .9 .9-.9 .9", "0-1.1 1.1.9-1.1.9", "0-1.25 1.25 0 0 1.25-1.25 0", "0 1.1 1.1-.9-1.1-.9",
  "-.35-1.1.35-1.1.35-.35 1.1-.35 1.1.35.35.35.35 1.1-.35 1.1-.35.35-1.1.35-1.1-.35-.35-.35", "1.1 0-.9 1.1-.9-1.1",
  "-1.1 0 .9 1.1.9-1.1", "-.6-1.1.6-1.1.6 1.1-.6 1.1"];
const corners = (shape) => (SHAPES[shape].match(/-?\d*\.?\d+/g) ?? []).map(Number);
const N_COLOURS = 10;
const shapeOf = (number) => number % SHAPES.length;
const colourOf = (number) => "var(--c" + number % N_COLOURS + ")";
function icon(number) {
  const points = corners(shapeOf(number)), holder = make("span");
  holder.innerHTML = '<svg viewBox="-1.3 -1.3 2.6 2.6" class="icon" aria-hidden="true"><polygon/><circle/></svg>';
  const [polygon, circle] = holder.firstChild.children;
  (points.length ? circle : polygon).remove();
  if (points.length) polygon.setAttribute("points", points.join(" ")); else circle.setAttribute("r", "1");
  holder.firstChild.firstChild.style.fill = colourOf(number);
  return holder.firstChild;
}
