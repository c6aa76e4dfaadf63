// Shows the document with Redoc.
Redoc.init("/openapi.json", { nativeScrollbars: true, requiredPropsFirst: true, hideDownloadButton: false }, document.getElementById("redoc"));
