// Before the first paint, so that a dark page does not flash white. The key is that of src/settings/store.ts.
(function () {
  try {
    var settings = JSON.parse(localStorage.getItem("hart:settings") || "{}");
    if (settings.theme === "light" || settings.theme === "dark") {
      document.documentElement.dataset.theme = settings.theme;
    }
    if (settings.language === "zh") document.documentElement.lang = "zh";
  } catch (_) {
    // Settings that cannot be read are the defaults.
  }
})();
