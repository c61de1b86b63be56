// Puts all mutants of a source into one text: each operator becomes a call that knows the numbers of its mutants.

/** The innermost of these sites that holds the place. */
export function siteAt(sites, place) {
  let best;
  for (const site of sites) {
    if (site.begin <= place && place < site.end && (!best || site.end - site.begin < best.end - best.begin))
      best = site;
  }
  return best;
}

/**
 * The text with its sites rewritten; a site carries `id`, the number of the first of its mutants. `origin(place)` is
 * the place in the source that a place in the new text comes from.
 */
export function rewrite(source, sites) {
  const order = [...sites].sort(
    (a, b) => a.begin - b.begin || b.end - a.end || (b.kind === "condition") - (a.kind === "condition"),
  );
  const pieces = [];
  let text = "";
  let next = 0;

  const put = (piece, from) => {
    pieces.push({ at: text.length, from });
    text += piece;
  };

  /** Writes a range, with the sites in it that are still to come. */
  function range(begin, end) {
    let at = begin;
    while (next < order.length && order[next].begin < end) {
      const site = order[next++];
      if (site.begin < at || site.end > end)
        throw new Error(`Places to change overlap: ${source.slice(site.begin, end)}`);
      put(source.slice(at, site.begin), at);
      call(site);
      at = site.end;
    }
    put(source.slice(at, end), at);
  }

  /** Writes what stands for a site: texts, and operands by their number. */
  function call(site) {
    const { kind, name, id, begin, end, parts, type, types, early } = site;
    const write = (...pieces) => {
      for (const piece of pieces) {
        if (typeof piece === "string") put(piece, begin);
        else range(parts[piece].begin, parts[piece].end);
      }
    };
    const alive = `::kvm::on(${id})`;
    const itself = source.slice(begin, end);
    const late = early ? "::kvm::at_run_time" : "";
    switch (kind) {
      case "table":
        return write("const");
      case "binary":
        return write(`::kvm::${name}(${id}, `, 0, ", ", 1, ")");
      case "unary":
        return write(`::kvm::${name}(${id}, `, 0, ")");
      case "lazy":
        // a || b is !(!a && !b): the second operand is asked for as rarely as in the mutant.
        return write(
          ...["(((static_cast<bool>(", 0, `) != ${alive}) ${name} `],
          ...["(static_cast<bool>(", 1, `) != ${alive})) != ${alive})`],
        );
      case "not":
        return write("(!static_cast<bool>(", 0, `) != ${alive})`);
      case "condition":
        return write("(static_cast<bool>(", 0, `) != ${alive})`);
      case "truth":
        return write(`${late}(${itself} != ${alive})`);
      case "constant":
        return write(type ? `static_cast<${type}>` : "", `(${late}(::kvm::${name}(${id}, `, itself, ")))");
      case "call":
        return write(`::kvm::${name}<${id}${types && `, ${types}`}>(`, 0, ", ", 1, ")");
      case "product":
        return write(`::kvm::product(${id}, ${name}, `, 0, ", ", 1, ")");
      default:
        throw new Error(`Nothing is known of ${kind}`);
    }
  }

  range(0, source.length);
  const origin = (place) => {
    const piece = pieces.findLast(({ at }) => at <= place);
    return piece.from + (place - piece.at);
  };
  return { text, origin };
}
