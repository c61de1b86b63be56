export default {
  title: "Course",
  url: "http://127.0.0.1",
  baseUrl: "/course/",
  presets: [["classic", { docs: { routeBasePath: "/" }, blog: false }]],
  // README
};
