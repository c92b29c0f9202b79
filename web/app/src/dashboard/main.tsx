import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./theme";
import "./style/base.css";
import "./style/ranking.css";
import "./style/airport.css";
import "./style/answers.css";
import "./style/instances.css";
import "./style/narrow.css";

applyTheme();
render(<App />, document.getElementById("app")!);
