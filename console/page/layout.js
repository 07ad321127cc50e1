// Where everybody stands in the picture. Pure: a view goes in, places come out.
//
// Wide: from left to right, a parent beside the middle of its children; children without children
// of their own stand together on a tray of some columns. Narrow: one below the other, indented.

const CELL = { width: 158, height: 38 };
const GAP = { column: 46, subtree: 12, tray: 8 };
const INDENT = 20;
const NARROW_ROW = 40;

/** Width of a label, near enough: the picture must not depend on which fonts there are. */
const labelWidth = (node) => Math.min(22, Math.max(11, (node.actor.row.name || node.id).length)) * 7.2 + 60;

/** Who stands on the tray. Whom the user closed stays where it was. */
const isLeaf = (kid) => kid.kids.length === 0 && kid.hidden === 0 && !(kid.parents && kid.said);

function split(view) {
  return { leaves: view.kids.filter(isLeaf), others: view.kids.filter((kid) => !isLeaf(kid)) };
}

function place(view, x, y, columns, depth, widths, out, parent) {
  const { leaves, others } = split(view);
  const cells = leaves.length + (view.hidden > 0 ? 1 : 0);
  const left = x + widths[depth] + GAP.column;
  const spot = { id: view.id, view, x, y: 0, width: widths[depth], parent, depth };
  out.nodes.push(spot);
  let at = y;
  const anchors = [];
  if (cells > 0) {
    const down = Math.ceil(cells / columns);
    const across = Math.ceil(cells / down);
    const tray = { x: left - GAP.tray, y: at, width: across * CELL.width + GAP.tray * 2,
      height: down * CELL.height + GAP.tray, owner: view.id };
    const spotOf = (index) => ({ x: left + Math.floor(index / down) * CELL.width,
      y: at + GAP.tray / 2 + (index % down) * CELL.height + CELL.height / 2 });
    leaves.forEach((leaf, index) => out.nodes.push({ id: leaf.id, view: leaf, ...spotOf(index),
      width: CELL.width - 6, parent: spot, depth: depth + 1, leaf: true }));
    if (view.hidden > 0) {
      out.nodes.push({ id: `${view.id}+`, view: null, hidden: view.hidden, owner: view.id,
        ...spotOf(leaves.length), width: CELL.width - 6, parent: spot, depth: depth + 1, leaf: true });
    }
    out.trays.push(tray);
    out.right = Math.max(out.right, tray.x + tray.width);
    anchors.push({ x: tray.x, y: at + tray.height / 2 });
    at += tray.height + GAP.subtree;
  }
  for (const kid of others) {
    const before = out.nodes.length;
    at = place(kid, left, at, columns, depth + 1, widths, out, spot);
    anchors.push({ x: left - 4, y: out.nodes[before].y });
  }
  const height = Math.max(at - y - (anchors.length ? GAP.subtree : 0), CELL.height);
  spot.y = anchors.length ? (anchors[0].y + anchors[anchors.length - 1].y) / 2 : y + CELL.height / 2;
  for (const anchor of anchors) out.links.push({ from: spot, to: anchor });
  out.right = Math.max(out.right, x + widths[depth]);
  return y + height + GAP.subtree;
}

function measure(view, depth, widths) {
  widths[depth] = Math.max(widths[depth] || 0, labelWidth(view));
  for (const kid of view.kids) if (!isLeaf(kid)) measure(kid, depth + 1, widths);
}

function wide(view, columns) {
  const widths = [];
  measure(view, 0, widths);
  const out = { nodes: [], trays: [], links: [], right: 0 };
  const bottom = place(view, 0, 0, columns, 0, widths, out, null);
  // In the order of reading: a parent, what is on its tray, then the other children.
  return { ...out, width: out.right + 8, height: bottom - GAP.subtree, narrow: false };
}

function narrow(view, width) {
  const out = { nodes: [], trays: [], links: [], right: width, width, narrow: true };
  let y = NARROW_ROW / 2;
  const walk = (node, depth, parent) => {
    const x = Math.min(depth, 6) * INDENT;
    const spot = { id: node.id, view: node, x, y, width: width - x - 4, parent, depth };
    out.nodes.push(spot);
    if (parent) out.links.push({ from: parent, to: { x, y } });
    y += NARROW_ROW;
    for (const kid of node.kids) walk(kid, depth + 1, spot);
    if (node.hidden > 0) {
      const at = Math.min(depth + 1, 6) * INDENT;
      out.nodes.push({ id: `${node.id}+`, view: null, hidden: node.hidden, owner: node.id, x: at, y,
        width: width - at - 4, parent: spot, depth: depth + 1, leaf: true });
      out.links.push({ from: spot, to: { x: at, y } });
      y += NARROW_ROW;
    }
  };
  walk(view, 0, null);
  out.height = y - NARROW_ROW / 2;
  return out;
}

/** The picture for a stage of this size: that number of columns per tray which shows it largest. */
export function layout(view, stage) {
  if (stage.narrow) return narrow(view, stage.width);
  let best = null;
  for (let columns = 1; columns <= 5; columns++) {
    const picture = wide(view, columns);
    picture.scale = Math.min(stage.width / picture.width, stage.height / picture.height);
    if (!best || picture.scale > best.scale * 1.02) best = picture;
    if (best.scale >= 1) break;
  }
  return best;
}
