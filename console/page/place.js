// Where the visitor is, kept behind the '#' of the address: whose panel is open, which list, tree or
// table, how much time the charts show. A reload, the back button and a copied address find it again.

const USUAL = { actor: "", list: "failures", minutes: "2", view: "tree" };

export class Place {
  /** `onGo` is told the new place when the visitor goes back, or types another address. */
  constructor(onGo) {
    addEventListener("popstate", () => onGo(this.read()));
  }

  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(Object.entries(USUAL).map(([name, usual]) => [name, given.get(name) || usual]));
  }

  /** Notes a change. What the visitor may want to go back from is a step of the browser's history. */
  note(change, step = true) {
    const next = { ...this.read(), ...change };
    const words = Object.entries(next).filter(([name, value]) => value !== USUAL[name]);
    const hash = words.length > 0 ? `#${new URLSearchParams(words)}` : "";
    if (hash === location.hash) return;
    history[step ? "pushState" : "replaceState"](null, "", location.pathname + location.search + hash);
  }
}
