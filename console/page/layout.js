// Where everybody stands in the picture. Pure: a view goes in, places come out.
//
// Wide: from left to right, a parent beside the middle of its children, or beside the first where not
// all of it is seen at a time; children without children of their own stand together on a tray of
// some columns. Outline, where the stage is narrow or the
// tree is much deeper than it is wide: one below the other, indented.

import { NAME_FONT, count, nameOf, widthOf as measured } from "./dom.js";

const CELL = { height: 36, least: 132, most: 190 };
const GAP = { column: 38, subtree: 9, tray: 6 };
const INDENT = { most: 20, least: 7 };
const OUTLINE = { width: 460, row: 35 }; // where there is room
const NARROW_ROW = 40;
const RESERVE_MS = 15000;

/** Width of a name, within reason: what is longer is cut. */
const widthOf = (view) => Math.min(165, measured(nameOf(view.actor.row).slice(0, 60), NAME_FONT));

/** Who stands on the tray. Whom the user closed stays where it was, and so does a supervisor without
 * children: they may come any moment. */
const isLeaf = (kid) =>
  kid.kids.length === 0 && kid.hidden === 0 && !(kid.parents ? kid.said : kid.actor.row.supervisor);

/** How many cells a tray gets: as many as it needed of late, so that coming and going does not make
 * the whole picture dance. */
const reserved = new Map(); // owner -> {cells, until}
function reserve(owner, cells, now) {
  const old = reserved.get(owner);
  if (!old || cells >= old.cells || now > old.until) {
    reserved.set(owner, { cells, until: now + RESERVE_MS });
    return cells;
  }
  return old.cells;
}

/** Another program needs no room for those who came and went in the one before. */
export const forgetTrays = () => reserved.clear();

/** Puts the children of a view to the right of `left` and below `y`; returns where that ends, and
 * the points that a line from their parent should lead to. */
function placeKids(view, left, y, depth, plan, parent) {
  const { out } = plan;
  const leaves = view.kids.filter(isLeaf);
  const anchors = [];
  let at = y;
  const wanted = leaves.length + (view.hidden > 0 ? 1 : 0);
  // Whose children are folded away by the user needs no room for them.
  const cells = view.parents && !view.open ? 0 : reserve(view.id, wanted, plan.now);
  if (cells > 0) {
    const tray = placeTray(view, leaves, cells, left, at, depth, plan, parent);
    anchors.push({ x: tray.x, y: at + tray.height / 2 });
    at += tray.height + GAP.subtree;
  }
  for (const kid of view.kids.filter((one) => !isLeaf(one))) {
    const before = out.nodes.length;
    at = place(kid, left, at, depth, plan, parent);
    anchors.push({ x: left - 4, y: out.nodes[before].y });
  }
  return { bottom: at, anchors };
}

function placeTray(view, leaves, cells, left, top, depth, plan, parent) {
  const { out, columns } = plan;
  const down = Math.ceil(cells / columns);
  const across = Math.ceil(cells / down);
  const more = view.hidden > 0 ? measured(`+${count(view.hidden)} more`, NAME_FONT) + 46 : 0;
  const wanted = Math.max(...leaves.map((leaf) => widthOf(leaf) + (leaf.parents ? 66 : 44)), more);
  const width = Math.max(CELL.least, Math.min(CELL.most, wanted));
  const tray = {
    x: left - GAP.tray,
    y: top,
    width: across * width + GAP.tray,
    height: down * CELL.height + GAP.tray,
  };
  const spotOf = (index) => ({
    x: left + Math.floor(index / down) * width,
    y: top + GAP.tray / 2 + (index % down) * CELL.height + CELL.height / 2,
    width: width - 6,
    parent,
    depth,
  });
  leaves.forEach((leaf, index) => out.nodes.push({ id: leaf.id, view: leaf, ...spotOf(index) }));
  if (view.hidden > 0)
    out.nodes.push({
      id: `${view.id}+`,
      view: null,
      hidden: view.hidden,
      owner: view.id,
      ...spotOf(leaves.length),
    });
  out.trays.push(tray);
  out.right = Math.max(out.right, tray.x + tray.width);
  return tray;
}

function place(view, x, y, depth, plan, parent) {
  const { out } = plan;
  const width = plan.widths[depth];
  const spot = { id: view.id, view, x, y: 0, width, parent, depth };
  out.nodes.push(spot);
  const { bottom, anchors } = placeKids(view, x + width + GAP.column, y, depth + 1, plan, spot);
  const last = plan.scrolls ? 0 : anchors.length - 1;
  spot.y = anchors.length ? (anchors[0].y + anchors[last].y) / 2 : y + CELL.height / 2;
  for (const anchor of anchors) out.links.push({ from: spot, to: anchor });
  out.right = Math.max(out.right, x + width);
  return Math.max(bottom, y + CELL.height + GAP.subtree);
}

function measure(kids, depth, widths) {
  for (const kid of kids) {
    if (isLeaf(kid)) continue;
    const below = count(kid.actor.row.children).length * 7; // "5,000 below" ends before the switch
    widths[depth] = Math.max(widths[depth] || 0, 108 + below, 122, widthOf(kid) + 64);
    measure(kid.kids, depth + 1, widths);
  }
}

/** `scrolls`: not all of it is seen at a time. Then a parent stands beside the first of its children,
 * not beside the middle of them, which may be out of sight. */
function wide(forest, columns, now, scrolls = false) {
  const plan = { columns, now, scrolls, widths: [], out: { nodes: [], trays: [], links: [], right: 0 } };
  measure(forest.kids, 0, plan.widths);
  // In the order of reading: a parent, what is on its tray, then the other children.
  const { bottom } = placeKids(forest, GAP.tray, 0, 0, plan, null);
  return { ...plan.out, columns, width: plan.out.right + 4, height: bottom - GAP.subtree, outline: false };
}

const depthOf = (kids) => (kids.length === 0 ? 0 : 1 + Math.max(...kids.map((kid) => depthOf(kid.kids))));

function outline(forest, width, row = NARROW_ROW) {
  const out = { nodes: [], trays: [], links: [], right: width, width, outline: true };
  // Names keep some room, however deep they are.
  const step = Math.max(INDENT.least, Math.min(INDENT.most, (width - 170) / depthOf(forest.kids)));
  const indent = (depth) => Math.min(depth * step, width - 130);
  let y = row / 2;
  const walk = (node, depth, parent) => {
    const x = indent(depth);
    const spot = { id: node.id, view: node, x, y, width: width - x - 4, parent, depth };
    out.nodes.push(spot);
    if (parent) out.links.push({ from: parent, to: { x, y } });
    y += row;
    for (const kid of node.kids) walk(kid, depth + 1, spot);
    if (node.hidden > 0) group(node, depth + 1, spot);
  };
  const group = (owner, depth, parent) => {
    const x = indent(depth);
    const { hidden } = owner;
    out.nodes.push({
      id: `${owner.id}+`,
      view: null,
      hidden,
      owner: owner.id,
      x,
      y,
      width: width - x - 4,
      parent,
      depth,
    });
    if (parent) out.links.push({ from: parent, to: { x, y } });
    y += row;
  };
  for (const root of forest.kids) walk(root, 0, null);
  if (forest.hidden > 0) group(forest, 0, null);
  out.height = y - row / 2;
  return out;
}

/** The picture of a forest ({kids}) for a stage of this size, at the size in which it can be read.
 * What does not fit is scrolled: down rather than sideways. So it is that number of columns per tray
 * with which all of it fits, or else, of those as wide as the stage, the one that is least tall; where
 * every one of them is too wide, an outline. */
export function layout(forest, stage, now) {
  if (stage.narrow) return { ...outline(forest, stage.width), narrow: true };
  let best = null;
  let least = null; // the narrowest
  for (let columns = 1; columns <= 6; columns++) {
    const picture = wide(forest, columns, now);
    if (!least || picture.width < least.width) least = picture;
    if (picture.width > stage.width) continue;
    if (!best || picture.height < best.height - 4) best = picture;
    if (best.height <= stage.height) break;
  }
  if (best) return best.height <= stage.height ? best : wide(forest, best.columns, now, true);
  const list = outline(forest, Math.min(OUTLINE.width, stage.width), OUTLINE.row);
  if (least.width > stage.width * 1.3 || least.height * 2 > list.height) return list;
  return wide(forest, least.columns, now, true);
}
