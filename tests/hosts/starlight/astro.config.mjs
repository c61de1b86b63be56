import { defineConfig } from "astro/config";
import starlight from "@astrojs/starlight";

export default defineConfig({
  base: "/course/",
  integrations: [
    starlight({ title: "Course", pagefind: false }),
    // README
  ],
});
