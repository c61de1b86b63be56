import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Link, Route, Routes } from "react-router";
import { Capacity } from "./Capacity.jsx";
import { own } from "./own.js";

function Calculator() {
  const [model, setModel] = useState("llama-3.1-8b");
  const [context, setContext] = useState(8192);
  const [heard, setHeard] = useState([]);
  return (
    <>
      <Link to="/away">Away</Link>
      <button id="own" type="button" onClick={() => setModel(own)}>
        Own
      </button>
      <button id="none" type="button" onClick={() => setModel(undefined)}>
        None
      </button>
      <button id="longer" type="button" onClick={() => setContext(16384)}>
        Longer
      </button>
      <output>{JSON.stringify(heard)}</output>
      <Capacity model={model} context={context} onPlan={(plan) => setHeard((before) => [...before, plan.sequences])} />
    </>
  );
}

createRoot(document.getElementById("app")).render(
  <StrictMode>
    <BrowserRouter basename="/course/">
      <Routes>
        <Route path="/" element={<Calculator />} />
        <Route path="/away" element={<Link to="/">Back</Link>} />
      </Routes>
    </BrowserRouter>
  </StrictMode>,
);
