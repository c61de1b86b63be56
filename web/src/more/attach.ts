/** Puts the further parts into one calculator. */
import words from "../../locales/en-more.json";
import type { Attached, Host } from "../more.js";
import { engineSettings } from "./engine.js";
import { logReader } from "./log.js";
import css from "./more.css";
import { ownModel } from "./own.js";
import { reservation } from "./reserved.js";
import { modelSearch } from "./search.js";
import { sharing } from "./share.js";
import { standIns } from "./stand-in.js";
import { wishes } from "./wish.js";

export function attach(host: Host): Attached {
  host.addEnglish(words);
  host.addStyles(css);
  const stead = standIns(host);
  const reserved = reservation(host);
  const panels = [stead, wishes(host), ownModel(host), engineSettings(host), logReader(host), sharing(host)];
  const search = modelSearch(host);
  return {
    parts: [
      () => reserved.show(),
      () => {
        for (const panel of panels) panel.show();
      },
    ],
    standIn: stead.standIn,
    why: stead.why,
    search: () => search.open(),
  };
}
