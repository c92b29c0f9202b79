// An application that has nothing to do with departures, and no subscriptions.

const customers = ["Ada", "Grace", "Edsger", "Barbara", "Donald"].map((customer, i) => ({ customer, orders: 40 - 7 * i, spent: 1_200.5 - 190.25 * i }));

export const shop = {
  title: "Shop",
  sdl: `
    type Query {
      customerTotals(customer: String!): CustomerTotals
      topCustomers(first: Int! = 10): [CustomerTotals!]!
    }
    type CustomerTotals {
      customer: String!
      orders: Int!
      spent: Float!
    }
  `,
  query: "",
  work: { stores: { orders: [], "orders-by-customer": ["customer-totals"] }, table: "product" },
  resolvers: () => ({
    customerTotals: ({ customer }) => customers.find((c) => c.customer === customer) ?? null,
    topCustomers: ({ first }) => customers.slice(0, first),
  }),
};
