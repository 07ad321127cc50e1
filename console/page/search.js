// Finding an actor by a part of its name or id, among all that live, not only those that are drawn.

import { get } from "./api.js";
import { $, el, nameOf } from "./dom.js";

const FOUND = 12;
const PAUSE_MS = 120; // after the last key

export class Search {
  constructor({ onChoose }) {
    this.onChoose = onChoose;
    this.input = $("search");
    this.list = $("search-list");
    this.found = [];
    this.at = -1;
    this.timer = 0;
  }

  start() {
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), PAUSE_MS);
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    $("search-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      clearTimeout(this.timer);
      const chosen = this.found[this.at];
      if (!chosen) await this.ask();
      this.choose(chosen || this.found[0]);
    });
  }

  async ask() {
    const filter = this.input.value.trim();
    if (!filter) return this.close();
    try {
      const { actors, matched } = await get("actors", { filter, limit: FOUND, sort: "name" });
      if (this.input.value.trim() !== filter) return undefined; // typed on meanwhile
      this.show(actors, matched);
    } catch (error) {
      this.list.replaceChildren(el("li", { class: "quiet", text: error.message }));
      this.setOpen(true);
    }
    return undefined;
  }

  show(actors, matched) {
    this.found = actors;
    this.at = actors.length > 0 ? 0 : -1;
    this.list.replaceChildren(
      ...actors.map((actor, at) =>
        el(
          "li",
          {
            role: "option",
            id: `found-${at}`,
            "aria-selected": at === 0,
            onpointerdown: (event) => {
              event.preventDefault();
              this.choose(actor);
            },
          },
          el("span", { text: nameOf(actor) }),
          el("span", { class: "quiet", text: `${actor.state} · ${actor.id}` }),
        ),
      ),
    );
    if (actors.length === 0)
      this.list.append(el("li", { class: "quiet", text: "Nobody of that name or id." }));
    if (matched > actors.length)
      this.list.append(el("li", { class: "quiet", text: `and ${matched - actors.length} more` }));
    this.setOpen(true);
    this.mark();
  }

  setOpen(open) {
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", open);
    if (!open) this.input.removeAttribute("aria-activedescendant");
  }

  close() {
    this.found = [];
    this.at = -1;
    this.setOpen(false);
    return undefined;
  }

  mark() {
    [...this.list.children].forEach((item, at) => {
      if (item.getAttribute("role") === "option") item.setAttribute("aria-selected", at === this.at);
    });
    if (this.at >= 0) this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
  }

  choose(actor) {
    if (!actor) return;
    this.input.value = "";
    this.close();
    this.onChoose(actor.id);
  }

  key(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      if (this.list.hidden && !this.input.value) this.input.blur();
      this.input.value = "";
      this.close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && this.found.length > 0) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.mark();
    }
  }
}
