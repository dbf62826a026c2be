// Four published clients in the channel `chat`. Each has a way to say something, and calls `show`
// for what is said.

import Echo from "./sdk/echo.js";
import { Socket } from "./sdk/phoenix.js";
import { io } from "./sdk/socket.io.js";

const MESSAGES_MAX = 100;

const { url } = await (await fetch("linerate.json")).json();
const { hostname, port } = new URL(url);
const webSocketUrl = url.replace("http", "ws");

/** The clients: `start` gets functions for what is said and for the state, and returns `say`. */
const CLIENTS = {
  "Socket.IO": (show, tell) => {
    const socket = io(url);
    socket.on("connect", () => tell("connected"));
    socket.on("disconnect", () => tell("connecting"));
    socket.on("said", show);
    return async (message) => {
      const { error } = await socket.timeout(5_000).emitWithAck("say", message);
      if (error !== undefined) {
        throw new Error(error.message);
      }
    };
  },
  "Laravel Echo": (show, tell) => {
    const echo = new Echo({
      broadcaster: "reverb",
      key: "one-channel",
      Pusher: window.Pusher,
      wsHost: hostname,
      wsPort: port,
      forceTLS: false,
      enabledTransports: ["ws"],
    });
    echo.connector.pusher.connection.bind("state_change", ({ current }) => tell(current));
    echo.channel("chat").listen(".said", show);
    return async (message) => {
      const response = await fetch("say", { method: "POST", body: JSON.stringify(message) });
      if (!response.ok) {
        throw new Error(await response.text());
      }
    };
  },
  Phoenix: (show, tell) => {
    const socket = new Socket(`${webSocketUrl}/socket`);
    socket.onError(() => tell("connecting"));
    socket.connect();
    const channel = socket.channel("chat");
    channel.on("said", show);
    channel.join().receive("ok", () => tell("connected"));
    return (message) =>
      new Promise((resolve, reject) => {
        const pushed = channel.push("say", message);
        pushed.receive("ok", resolve);
        pushed.receive("error", ({ reason }) => reject(new Error(reason)));
        pushed.receive("timeout", () => reject(new Error("no answer")));
      });
  },
  Centrifuge: (show, tell) => {
    const client = new window.Centrifuge(`${webSocketUrl}/connection/websocket`);
    client.on("state", ({ newState }) => tell(newState));
    const subscription = client.newSubscription("chat");
    subscription.on("publication", ({ data, tags }) => tags?.event === "said" && show(data));
    subscription.subscribe();
    client.connect();
    return (message) => client.rpc("say", message);
  },
};

for (const [name, start] of Object.entries(CLIENTS)) {
  const panel = document.querySelector("template").content.cloneNode(true).firstElementChild;
  const find = (selector) => panel.querySelector(selector);
  find("h2").textContent = name;
  find("input").ariaLabel = `Say something with ${name}`;
  const tell = (state) => (find(".state").textContent = state);
  const list = find("ol");
  const say = start(({ text, from }) => {
    const item = document.createElement("li");
    const sender = document.createElement("span");
    sender.textContent = from;
    item.append(sender, text);
    list.append(item);
    while (list.childElementCount > MESSAGES_MAX) {
      list.firstElementChild.remove();
    }
    list.scrollTop = list.scrollHeight;
  }, tell);
  find("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { text } = event.target.elements;
    try {
      await say({ text: text.value, from: name });
      text.value = "";
    } catch (error) {
      tell(error.message);
    }
  });
  document.querySelector("main").append(panel);
}
