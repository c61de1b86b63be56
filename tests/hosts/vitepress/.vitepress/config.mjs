import { defineConfig } from "vitepress";

export default defineConfig({
  title: "Course",
  base: "/course/",
  themeConfig: { search: { provider: "local" } },
  // README
});
