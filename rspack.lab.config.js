// Module ids must not depend on the checkout's folder, so that committed assets can be compared in CI.
module.exports = { optimization: { moduleIds: 'natural' } };
