// Chooses a refresh interval once there are panels: no parameter of the page does.
const choose = setInterval(() => {
  const button = document.querySelector(".vm-autorefresh .vm-button_full-width");
  if (!button || !document.querySelector(".vm-predefined-panel")) {
    return;
  }
  const items = [...document.querySelectorAll(".vm-execution-controls-list .vm-list-item")];
  const item = items.find((e) => e.textContent === "5s");
  if (item) {
    item.click();
    clearInterval(choose);
  } else {
    button.click();
  }
}, 250);
