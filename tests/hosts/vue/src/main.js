import { createApp } from "vue";
import { createRouter, createWebHistory } from "vue-router";
import App from "./App.vue";
import Away from "./Away.vue";
import Calculator from "./Calculator.vue";

const routes = [
  { path: "/", component: Calculator },
  { path: "/away", component: Away },
];
createApp(App)
  .use(createRouter({ history: createWebHistory("/course/"), routes }))
  .mount("#app");
