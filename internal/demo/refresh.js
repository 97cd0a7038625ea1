// Selects a refresh interval once the page has panels. The page has no parameter for it.
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
