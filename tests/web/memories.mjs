/**
 * Puts the memory of every kernel that starts from here on into `memories`; what is returned ends that. As text it runs in
 * a page too.
 */
export function watchMemories(memories) {
  const note = ({ exports }) => {
    const all = Object.values(exports);
    // What unpacks a kernel has a memory too, and one function.
    if (all.filter((one) => typeof one === "function").length < 2) return;
    for (const one of all) if (one instanceof WebAssembly.Memory) memories.push(one);
  };
  const { Instance, instantiate } = WebAssembly;
  WebAssembly.Instance = class extends Instance {
    constructor(...given) {
      super(...given);
      note(this);
    }
  };
  WebAssembly.instantiate = async (...given) => {
    const made = await instantiate(...given);
    note(made.instance ?? made);
    return made;
  };
  return () => Object.assign(WebAssembly, { Instance, instantiate });
}

/** The same as a page's script, which leaves them in `memories`. */
export const WATCHING = `window.memories = []; (${watchMemories})(memories);`;
export const WATCH = `<script>${WATCHING}</script>`;
