// The little that modules ask a browser for when they are loaded.
Object.assign(globalThis, { sessionStorage: { getItem: () => null, setItem: () => {} } });

export {};
