// ---- the map: marks and pictures on a canvas
const field = get("field"), canvas = get("canvas");
const context = canvas.getContext("2d");
const at = Float32Array.from(data.at);
const SPAN = [0, 1].map((axis) => Math.max(1, ...[at.reduce((most, value, index) => index % 2 === axis ? Math.max(most, value) : most, 0)]));
const MAX_ZOOM = 60, ZOOM_STEP = 1.6, MARGIN = 34, REACH = 16, PICTURE = 46;
let zoom = 1, centre = [SPAN[0] / 2, SPAN[1] / 2], size = [0, 0];
let current = -1, alone = null, waiting = false, moving = false, path = null;

const scale = () => zoom * Math.min((size[0] - 2 * MARGIN) / SPAN[0], (size[1] - 2 * MARGIN) / SPAN[1]);
const onScreen = (place) => [
  size[0] / 2 + (at[2 * place] - centre[0]) * scale(), size[1] / 2 - (at[2 * place + 1] - centre[1]) * scale()];
const hidden = (place) => !groupOf[place] || alone !== null && groupOf[place].key !== alone;

// What a mark looks like: a number for its colour and one for its shape.
const SHADES = 8;
function lookOf(place) {
  const by = get("paint").value;
  if (by === "sure") return [N_COLOURS + Math.min(SHADES - 1, Math.floor(data.sure[place] / 1000 * SHADES)), 0];
  if (by === "truth") return [data.truth[place] % N_COLOURS, shapeOf(data.truth[place])];
  return [groupOf[place].number % N_COLOURS, shapeOf(groupOf[place].number)];
}
function colourAt(colour) {
  if (colour >= N_COLOURS) return "hsl(" + (25 + 190 * (colour - N_COLOURS) / (SHADES - 1)) + " 75% 45%)";
  return getComputedStyle(document.documentElement).getPropertyValue("--c" + colour).trim();
}
let stamps = new Map(), stamped = 0;
function stamp(colour, shape, radius) {
  const key = colour * 100 + shape;
  if (stamps.has(key)) return stamps.get(key);
  const dense = devicePixelRatio || 1, side = Math.ceil(2.8 * radius * dense);
  const made = make("canvas");
  made.width = made.height = side;
  const brush = made.getContext("2d");
  brush.translate(side / 2, side / 2);
  brush.scale(radius * dense, radius * dense);
  brush.fillStyle = colourAt(colour);
  brush.beginPath();
  const points = corners(shape);
  if (!points.length) brush.arc(0, 0, 1, 0, 7);
  for (let i = 0; i < points.length; i += 2) brush.lineTo(points[i], points[i + 1]);
  brush.fill();
  stamps.set(key, made);
  return made;
}

function paint() {
  waiting = false;
  const dense = devicePixelRatio || 1, box = field.getBoundingClientRect();
  if (!box.width) return;
  size = [box.width, box.height];
  if (canvas.width !== Math.round(size[0] * dense) || canvas.height !== Math.round(size[1] * dense)) {
    [canvas.width, canvas.height] = size.map((length) => Math.round(length * dense));
  }
  const styles = getComputedStyle(document.documentElement);
  const ink = styles.getPropertyValue("--ink"), halo = styles.getPropertyValue("--ground"), accent = styles.getPropertyValue("--accent");
  context.setTransform(dense, 0, 0, dense, 0, 0);
  context.clearRect(0, 0, ...size);
  const radius = Math.min(7, Math.max(2, 110 / Math.sqrt(n) * zoom ** 0.4));
  if (stamped !== radius) { stamps = new Map(); stamped = radius; }
  const factor = scale(), shift = 1.4 * radius, skip = moving && n > 30_000 ? Math.ceil(n / 15_000) : 1;
  const cells = new Map(), pictured = get("pictured").checked && sheet.complete && !moving || get("pictured").checked && n <= 10_000;
  for (let place = 0; place < n; place += skip) {
    if (!groupOf[place]) continue;
    const x = size[0] / 2 + (at[2 * place] - centre[0]) * factor, y = size[1] / 2 - (at[2 * place + 1] - centre[1]) * factor;
    if (x < -30 || y < -30 || x > size[0] + 30 || y > size[1] + 30) continue;
    const faint = hidden(place), [colour, shape] = lookOf(place);
    context.globalAlpha = faint ? 0.08 : 0.85;
    context.drawImage(stamp(colour, shape, radius), x - shift, y - shift, 2 * shift, 2 * shift);
    if (faint || !pictured || !marked.has(place)) continue;
    // One picture in each cell; cells lie still while the map is moved.
    const cell = Math.floor(at[2 * place] * factor / PICTURE / 1.2) * 65_536 + Math.floor(at[2 * place + 1] * factor / PICTURE / 1.2);
    const held = cells.get(cell);
    if (held === undefined || data.sure[place] > data.sure[held]) cells.set(cell, place);
  }
  context.globalAlpha = 1;
  shownPictures = Array.from(cells.values());
  for (const place of shownPictures) drawPicture(place);
  names(ink, halo);
  for (const place of selected) ring(place, accent, 3);
  if (current >= 0 && groupOf[current]) ring(current, ink, 3);
  if (path) {
    context.beginPath();
    path.forEach(([x, y]) => context.lineTo(x, y));
    context.closePath();
    context.strokeStyle = accent;
    context.lineWidth = 2;
    context.setLineDash([6, 4]);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 0.12;
    context.fillStyle = accent;
    context.fill();
    context.globalAlpha = 1;
  }
}
let shownPictures = [];
function drawPicture(place) {
  const mark = marked.get(place), [x, y] = onScreen(place), [wide, high] = sizeOf(mark);
  const times = PICTURE * Math.min(1.6, zoom ** 0.25) / Math.max(wide, high), w = wide * times, h = high * times;
  context.fillStyle = colourAt(lookOf(place)[0]);
  context.fillRect(x - w / 2 - 2, y - h / 2 - 2, w + 4, h + 4);
  context.imageSmoothingEnabled = !exact;
  drawThumb(context, mark, x - w / 2, y - h / 2, w, h);
}
function ring(place, colour, thick) {
  const [x, y] = onScreen(place);
  context.beginPath();
  context.arc(x, y, 11, 0, 7);
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.stroke();
}
function names(ink, halo) {
  if (get("paint").value === "truth") return;
  const high = groups.length > 30 ? 11 : 13;
  context.font = "600 " + high + "px system-ui, sans-serif";
  context.textAlign = "center";
  for (const group of groups) {
    if (!group.members.length || alone !== null && group.key !== alone) continue;
    const heart = group.heart ??= group.members[Math.floor(Math.min(group.members.length - 1, 3))];
    const [x, y] = onScreen(heart);
    const text = group.name || String(group.number);
    const wide = context.measureText(text).width + 12;
    context.fillStyle = halo;
    context.globalAlpha = 0.9;
    context.beginPath();
    context.roundRect(x - wide / 2, y - 35 - high, wide, high + 9, 6);
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = ink;
    context.fillText(text, x, y - 32);
  }
}
function repaint() {
  if (!waiting) requestAnimationFrame(paint);
  waiting = true;
}
function rest() {
  clearTimeout(rest.timer);
  moving = true;
  rest.timer = setTimeout(() => { moving = false; repaint(); }, 120);
}

function look(times, x, y) {
  zoom = Math.min(MAX_ZOOM, Math.max(1, times));
  const half = [0, 1].map((axis) => Math.max(0, SPAN[axis] / 2 - size[axis] / 2 / scale() + MARGIN / scale()));
  centre = [x, y].map((value, axis) => Math.min(SPAN[axis] / 2 + half[axis], Math.max(SPAN[axis] / 2 - half[axis], value)));
  canvas.style.touchAction = zoom > 1 || get("lasso").getAttribute("aria-pressed") === "true" ? "none" : "pan-y";
  get("farther").disabled = get("whole").disabled = zoom === 1;
  get("closer").disabled = zoom === MAX_ZOOM;
  field.dataset.zoom = zoom.toFixed(3);
  rest();
  repaint();
}
// What lies under a point of the screen stays there.
function zoomAt(x, y, factor) {
  const before = scale(), times = Math.min(MAX_ZOOM, Math.max(1, zoom * factor)), after = before * times / zoom;
  const dx = (x - size[0] / 2) * (1 / before - 1 / after), dy = (y - size[1] / 2) * (1 / before - 1 / after);
  look(times, centre[0] + dx, centre[1] - dy);
}
function zoomBy(factor) {
  // Around the sample that is pointed at, or the one nearest to the middle: never into emptiness.
  const inside = ([x, y]) => x > 0 && y > 0 && x < size[0] && y < size[1], half = [size[0] / 2, size[1] / 2];
  const place = current >= 0 && inside(onScreen(current)) ? current : nearest(...half, Infinity);
  const point = place < 0 ? half : onScreen(place);
  zoomAt(...(inside(point) ? point : half), factor);
}
function nearest(x, y, most, accept) {
  let best = -1, least = most ** 2;
  for (const place of shownPictures) {  // pictures are larger than marks
    const [a, b] = onScreen(place), d = Math.max(Math.abs(a - x), Math.abs(b - y)) / 1.6;
    if (!accept && d ** 2 < least) { least = d ** 2; best = place; }
  }
  if (best >= 0) return best;
  const factor = scale();
  for (let place = 0; place < n; place += 1) {
    if (hidden(place)) continue;
    const a = size[0] / 2 + (at[2 * place] - centre[0]) * factor - x, b = size[1] / 2 - (at[2 * place + 1] - centre[1]) * factor - y;
    const d = a * a + b * b;
    if (d < least && (!accept || accept(a, b))) { least = d; best = place; }
  }
  return best;
}
function point(place, x, y) {
  if (place !== current) {
    current = place;
    get("hovered").textContent = place < 0 ? "" : name(place) + " · " + noteOf(place);
    get("peek")?.remove();
    repaint();
    if (place < 0 || x === undefined) return;
    const peek = make("div");
    peek.id = "peek";
    peek.style.setProperty("--ratio", ratio(place));
    peek.append(picture(place));
    peek.style.left = (x > size[0] / 2 ? x - 196 : x + 24) + "px";
    peek.style.top = Math.max(4, Math.min(size[1] - 180, y - 80)) + "px";
    field.append(peek);
  }
}

const fingers = new Map();
let moved = false;
const where = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const lassoing = (event) => event.shiftKey || get("lasso").getAttribute("aria-pressed") === "true";
canvas.addEventListener("pointerdown", (event) => {
  fingers.set(event.pointerId, where(event));
  moved = false;
  canvas.setPointerCapture(event.pointerId);
  field.focus({ preventScroll: true });
  if (lassoing(event) && fingers.size === 1) path = [where(event)];
  else point(nearest(...where(event), REACH), ...where(event));
});
canvas.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId), now = where(event);
  if (!before) {
    if (event.pointerType !== "touch") point(nearest(...now, REACH), ...now);
    return;
  }
  if (path) {
    path.push(now);
    moved = true;
    repaint();
    return;
  }
  const shift = [now[0] - before[0], now[1] - before[1]];
  if (fingers.size === 1) {
    if (!moved && Math.hypot(...shift) < 5) return;
    moved = true;
    get("peek")?.remove();
    look(zoom, centre[0] - shift[0] / scale(), centre[1] + shift[1] / scale());
  } else {
    const other = Array.from(fingers).find(([id]) => id !== event.pointerId)[1];
    const apart = ([x, y]) => Math.max(1, Math.hypot(x - other[0], y - other[1]));
    moved = true;
    zoomAt(...other, apart(now) / apart(before));
  }
  fingers.set(event.pointerId, now);
});
function within([x, y], corners_) {
  let inside = false;
  for (let i = 0, j = corners_.length - 1; i < corners_.length; j = i, i += 1) {
    const [a, b] = corners_[i], [c, d] = corners_[j];
    if ((b > y) !== (d > y) && x < (c - a) * (y - b) / (d - b) + a) inside = !inside;
  }
  return inside;
}
canvas.addEventListener("pointerup", (event) => {
  fingers.delete(event.pointerId);
  if (path) {
    const drawn = path;
    path = null;
    if (drawn.length > 2) {
      const inside = every.filter((place) => !hidden(place) && within(onScreen(place), drawn));
      keep(inside, true);
      say(words(inside.length, data.noun) + " selected");
    }
    repaint();
    return;
  }
  if (moved || event.pointerType === "touch" && current < 0) return;
  const place = nearest(...where(event), REACH);
  if (place < 0) return;
  if (event.ctrlKey || event.metaKey) toggle(place);
  else open(place, groupOf[place].members);
});
canvas.addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); path = null; });
canvas.addEventListener("pointerleave", () => { if (!fingers.size) get("peek")?.remove(); });
field.addEventListener("wheel", (event) => {
  // The wheel moves the page until the map is in use, as everywhere else.
  if (!event.ctrlKey && !event.metaKey && document.activeElement !== field) return;
  event.preventDefault();
  get("peek")?.remove();
  zoomAt(...where(event), Math.exp(-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 100) / 250));
}, { passive: false });

const AHEAD = {
  ArrowRight: (x, y) => x > 1 && Math.abs(y) <= x, ArrowLeft: (x, y) => x < -1 && Math.abs(y) <= -x,
  ArrowDown: (x, y) => y > 1 && Math.abs(x) <= y, ArrowUp: (x, y) => y < -1 && Math.abs(x) <= -y,
};
function walk(key) {
  const next = current < 0 || hidden(current) ? every.findIndex((place) => !hidden(place))
    : nearest(...onScreen(current), Infinity, AHEAD[key]);
  if (next < 0) return;
  point(next);
  const [x, y] = onScreen(next);
  if (x < 0 || y < 0 || x > size[0] || y > size[1]) look(zoom, at[2 * next], at[2 * next + 1]);
}
field.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    "+": () => zoomBy(ZOOM_STEP), "=": () => zoomBy(ZOOM_STEP), "-": () => zoomBy(1 / ZOOM_STEP),
    "0": () => look(1, SPAN[0] / 2, SPAN[1] / 2),
    Enter: () => { if (current >= 0) open(current, groupOf[current].members); },
    " ": () => { if (current >= 0) { toggle(current); repaint(); } },
    m: () => { if (current >= 0) chooseCluster(meant(current)); },
    x: () => { if (current >= 0) act(setAside, meant(current)); },
    f: () => { if (current >= 0) findSimilar(meant(current)); },
  };
  if (AHEAD[event.key]) walk(event.key);
  else if (acts[event.key]) acts[event.key]();
  else return;
  event.preventDefault();
});
get("closer").addEventListener("click", () => zoomBy(ZOOM_STEP));
get("farther").addEventListener("click", () => zoomBy(1 / ZOOM_STEP));
get("whole").addEventListener("click", () => look(1, SPAN[0] / 2, SPAN[1] / 2));
get("lasso").addEventListener("click", () => {
  get("lasso").setAttribute("aria-pressed", get("lasso").getAttribute("aria-pressed") !== "true");
  look(zoom, ...centre);
});
for (const id of ["paint", "pictured"]) get(id).addEventListener("change", () => { drawLegend(); repaint(); });
sheet.addEventListener("load", repaint);
addEventListener("resize", repaint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { stamps = new Map(); repaint(); });

function drawLegend() {
  const by = get("paint").value;
  if (by === "cluster") {
    get("legend").replaceChildren(...groups.map((group) => {
      const item = make("li"), choice = button("", "Show only " + group.title, () => {
        alone = alone === group.key ? null : group.key;
        drawLegend();
        repaint();
      }, "chip");
      choice.setAttribute("aria-pressed", alone === group.key);
      choice.append(icon(group.number), group.title);
      item.append(choice);
      return item;
    }));
    return;
  }
  const texts = by === "truth" ? data.classes.map((text, index) => [text, colourAt(index % N_COLOURS), index])
    : Array.from({ length: SHADES }, (_, step) => ["from " + Math.round(100 * step / SHADES) + " %", colourAt(N_COLOURS + step), 0]);
  get("legend").replaceChildren(...texts.slice(0, 60).map(([text, colour, index]) => {
    const item = make("li", "chip"), drawn = icon(index);
    drawn.firstChild.style.fill = colour;
    item.append(drawn, text || "unknown");
    return item;
  }));
}
function drawMap() {
  if (alone !== null && !groups.some((group) => group.key === alone)) alone = null;
  drawLegend();
  paint();
  look(zoom, ...centre);
}
function showOnMap(group) {
  alone = group.key;
  show("map");
  drawLegend();
  repaint();
  scrollTo(0, 0);
}
